--   step 11: another plan: Output of Seq Scan
--
--   finding   df667620333e, by the oracle plan (plan under plan Output of Seq Scan)
--   case      725/hash_growth/221; it shows at step 11 below
--   modes     plain
--   shows     shows in 3 of 3 runs
--   blame     0015-Make-the-buckets-of-a-Parallel-Hash-when-its-tuples-.patch, number 18 of the 22 patches of
--             patched
--   samples   planned
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
--   expected, as master did:
--     Aggregate > Gather > Aggregate > Hash Join > Seq Scan
--     Output: ['a.k1', 'a.i1']
--
--   actual, as patched did:
--     Aggregate > Gather > Aggregate > Hash Join > Seq Scan
--     Output: ['a.k1']
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/fixed/df667620333e.sql --arm master --arm patched --arm upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "hash_growth", "case_id": "725/hash_growth/221", "oracle": "plan", "fingerprint": "df667620333e", "arms": ["master", "patched"]}

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

-- sample {"name": "planned"}

-- scene 0: command
CREATE TABLE s1 (k1 int8, i1 int4);

-- scene 1: command
CREATE TABLE s2 (k1 int8, i1 int4);

-- scene 2: command
INSERT INTO s1 SELECT 1 FROM generate_series(1, 1050) AS g;

-- scene 3: command
INSERT INTO s2 SELECT 1 FROM generate_series(1, 279) AS g;

-- scene 4: command
ALTER TABLE s1 SET (parallel_workers = 2);

-- scene 5: command
ALTER TABLE s2 SET (parallel_workers = 2);

-- scene 6: command
ANALYZE s1 (i1);

-- scene 7: command
ANALYZE s2;

-- scene 8: command
UPDATE pg_class SET reltuples = reltuples * 12 WHERE oid = 's1'::regclass;

-- scene 9: command
SET hash_mem_multiplier = 1;

-- scene 10: command
SET work_mem TO '205';

-- step 11: query
SELECT count(*), sum(length(b.w1)) FROM s2 AS a INNER JOIN (SELECT k1, repeat(md5(CAST(i1 AS text)), 0) AS w1 FROM s1 WHERE LEAST(i1) <> 0) AS b ON a.k1 = b.k1;

-- evidence 12: query
EXPLAIN (VERBOSE, SETTINGS, SUMMARY, MEMORY) SELECT count(*), sum(length(b.w1)) FROM s2 AS a INNER JOIN (SELECT k1, repeat(md5(CAST(i1 AS text)), 0) AS w1 FROM s1 WHERE LEAST(i1) <> 0) AS b ON a.k1 = b.k1;

-- end

RESET ALL;
SET search_path = duel, public;

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
