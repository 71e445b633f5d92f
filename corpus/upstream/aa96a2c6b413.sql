--   step 6: master raises an internal error: XX000 Aggref found in non-Agg plan node in ExecInitExprRec (as all arms do)
--
--   finding   aa96a2c6b413, by the oracle internal_error (XX000 Aggref found in non-Agg plan node in ExecInitExprRec)
--   case      721/merged_bounds/34; it shows at step 6 below
--   modes     hash_only (partly), partitionwise (partly)
--   shows     shows in 3 of 3 runs
--   blame     upstream, master shows it without any patch
--   arm       master: build b31952c5bdad, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4, series 0001-Fix-the-number-of-hash-buckets-when-the-hash-
--             table-i.patch 0002-Revert-postgres_fdw-s-remote-sampling-for-ANALYZE.patch
--   arm       patched: build 95ca87d56277, flavor assert, base pg17 17.11
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
--             relations-without-.patch 0013-Make-hash-buckets-when-all-tuples-of-a-batch-are-the.patch 0014-Have-
--             the-remote-server-take-ANALYZE-s-sample-of-a-fo.patch 0015-Use-shared-Bloom-filters-in-Parallel-
--             Hash-left-full-.patch
--   arm       upstream: build 0d6089262ef9, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected:
--     no error of SQLSTATE class XX
--
--   actual:
--     ERROR: XX000: Aggref found in non-Agg plan node
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/aa96a2c6b413.sql --arm master --arm patched --arm upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "merged_bounds", "case_id": "721/merged_bounds/34", "oracle": "internal_error", "fingerprint": "aa96a2c6b413", "arms": ["master", "master"]}

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

-- mode {"name": "hash_only (partly)"}
SET enable_nestloop = 'off';

-- mode {"name": "partitionwise (partly)"}
SET enable_partitionwise_join = 'on';

-- scene 0: command
CREATE TABLE r2 (k1 text COLLATE "C", i1 int4) PARTITION BY list (k1);

-- scene 1: command
CREATE TABLE r2_1 PARTITION OF r2  FOR VALUES IN ('k0004');

-- scene 2: command
CREATE INDEX ON r2 (k1);

-- scene 3: command
CREATE TABLE r3 (k1 text COLLATE "C", k2 numeric, i2 int4) PARTITION BY list (k1);

-- scene 4: command
CREATE TABLE r3_1 PARTITION OF r3  FOR VALUES IN ('k0004');

-- scene 5: command
CREATE INDEX ON r3 (k1);

-- step 6: query ordered
SELECT sum(a2.i1) FILTER (WHERE a1.i2 BETWEEN 1 AND 0) FROM r3 AS a1 INNER JOIN (r2 AS a2 INNER JOIN r3 AS a4 ON a2.k1 = a4.k1) ON a1.k1 = a4.k1 AND a1.k2 = 1 INNER JOIN LATERAL (SELECT * FROM r2 TABLESAMPLE system(0) REPEATABLE (a1.i2)) AS a5 ON a1.k1 = a5.k1 ORDER BY 1;

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
