--   step 8: 1 row missing, 1 surplus, of 1: an equivalent expression changes rows (as all arms do)
--
--   finding   5bec7c1a6e39, by the oracle eet (an equivalent expression changes rows)
--   case      726/pruned_partitions/81; it shows at step 8 below
--   modes     plain
--   shows     shows in 3 of 3 runs
--   blame     upstream, master shows it without any patch
--   samples   transformed
--   arm       master: build b31952c5bdad, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4, series 0001-Fix-the-number-of-hash-buckets-when-the-hash-
--             table-i.patch 0002-Revert-postgres_fdw-s-remote-sampling-for-ANALYZE.patch
--   arm       patched: build 49ad11827ee3, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4, series 0001-Fix-the-number-of-hash-buckets-when-the-hash-
--             table-i.patch 0002-Revert-postgres_fdw-s-remote-sampling-for-ANALYZE.patch 0000-Clear-
--             AuxProcessResourceOwner-s-hash-table-for-its-n.patch 0001-Deduplicate-entries-of-ResourceOwner-s-
--             hash-table.patch 0002-Create-COPY-s-multi-insert-slots-in-the-per-query-co.patch 0003-Add-blocked-
--             Bloom-filters-of-hash-values.patch 0004-Use-Bloom-filters-in-hash-joins-with-more-than-one-b.patch
--             0005-Use-Bloom-filters-in-left-full-and-anti-hash-joins.patch 0006-Stop-using-a-hash-join-s-Bloom-
--             filter-while-that-doe.patch 0007-Delay-look-ups-in-a-hash-join-s-Bloom-filter-until-t.patch
--             0008-Start-a-hash-join-s-Bloom-filter-when-batches-have-t.patch 0009-Make-room-for-a-better-Bloom-
--             filter-in-hash-joins.patch 0010-Share-a-Bloom-filter-between-the-processes-of-a-Para.patch 0011-Don-
--             t-let-sets-of-clause-serials-grow-with-the-numbe.patch 0012-Find-equivalence-members-of-child-
--             relations-without-.patch 0013-Make-batches-of-hash-joins-independent-of-those-of-o.patch 0014-Make-
--             hash-buckets-when-all-tuples-of-a-batch-are-the.patch 0015-Make-the-buckets-of-a-Parallel-Hash-when-
--             its-tuples-.patch 0016-Have-the-remote-server-take-ANALYZE-s-sample-of-a-fo.patch 0017-Use-shared-
--             Bloom-filters-in-Parallel-Hash-left-full-.patch 0018-Start-a-Parallel-Hash-Join-s-Bloom-filter-when-
--             there.patch 0019-postgres_fdw-Sample-each-row-with-the-same-probabili.patch
--   arm       upstream: build 0d6089262ef9, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected:
--     these rows, which are missing:
--       ()
--
--   actual:
--     these rows, which are surplus:
--       (1)
--     query: SELECT (CASE WHEN (q) IS NULL THEN (q) ELSE (q) END) FROM (SELECT l.n FROM d AS o CROSS JOIN LATERAL (SELECT (SELECT 1 FROM q AS b WHERE (CASE WHEN ((b.k...
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/5bec7c1a6e39.sql --arm master --arm patched --arm upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "pruned_partitions", "case_id": "726/pruned_partitions/81", "oracle": "eet", "fingerprint": "5bec7c1a6e39", "arms": ["master", "master"]}

\encoding UTF8
\set ON_ERROR_STOP off
\set ECHO queries
\pset pager off
\pset null '(null)'
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS duel CASCADE;
CREATE SCHEMA duel;
RESET client_min_messages;

SET search_path = duel, public;

-- sample {"name": "transformed"}

-- scene 0: command
CREATE TABLE r (k1 int4, k2 timestamptz);

-- scene 1: command
INSERT INTO r SELECT (CAST('{14,18,19,24}' AS int4[]))[1], CAST('2024-01-01' AS timestamptz) + '2' FROM generate_series(8, 8) AS g;

-- scene 2: command
CREATE TABLE d (k1 int4, k2 timestamptz);

-- scene 3: command
INSERT INTO d SELECT (CAST('{14,18,19,24}' AS int4[]))[1], '2024-01-01' FROM generate_series(1, 1) AS g;

-- scene 4: command
CREATE TABLE q (k1 int4, k2 timestamptz) PARTITION BY range (k1, k2);

-- scene 5: command
CREATE TABLE q_2 PARTITION OF q  FOR VALUES FROM (16, minvalue) TO (18, '2024-01-04');

-- scene 6: command
CREATE TABLE q_3 PARTITION OF q DEFAULT;

-- scene 7: command
INSERT INTO q SELECT k1, k2 FROM r;

-- step 8: query
SELECT q FROM (SELECT l.n FROM d AS o CROSS JOIN LATERAL (SELECT (SELECT 1 FROM q AS b WHERE b.k1 = o.k1 AND b.k2 > o.k2) AS n FROM d AS i) AS l (n)) AS q;

-- evidence 9: query
SELECT (CASE WHEN (q) IS NULL THEN (q) ELSE (q) END) FROM (SELECT l.n FROM d AS o CROSS JOIN LATERAL (SELECT (SELECT 1 FROM q AS b WHERE (CASE WHEN ((b.k1 = o.k1) OR NOT (b.k1 = o.k1) OR (b.k1 = o.k1) IS NULL) THEN (b.k1 = o.k1) ELSE NULL END) AND (CASE WHEN ((b.k2 > o.k2) OR NOT (b.k2 > o.k2) OR (b.k2 > o.k2) IS NULL) THEN (b.k2 > o.k2) ELSE NULL END)) AS n FROM d AS i) AS l (n)) AS q;

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
