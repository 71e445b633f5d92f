--   step 8: 0 rows missing, 1 surplus, of 0: rows change when plans are looped
--
--   finding   2e463b541e5e, by the oracle dqp (rows change when plans are looped)
--   case      1/pruned_partitions/46; it shows at step 8 below
--   modes     plain
--   shows     shows in 3 of 3 runs
--   blame     upstream, patched shows it without any patch
--   samples   replanned
--   arm       patched: build d289116e755e, flavor coverage, base pg17 17.11
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
--
--   expected:
--     no others
--     query: SELECT 1 FROM p AS b WHERE b.k1 BETWEEN 'f' AND 'f'
--
--   actual:
--     these rows, which are surplus:
--       1
--     query: SELECT 1 FROM p AS b WHERE b.k1 BETWEEN 'f' AND 'f'
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/2e463b541e5e.sql --arm patched --arm upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "pruned_partitions", "case_id": "1/pruned_partitions/46", "oracle": "dqp", "fingerprint": "2e463b541e5e", "arms": ["patched", "patched"]}

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

-- sample {"name": "replanned"}

-- scene 0: command
CREATE DOMAIN truth AS bool;

-- scene 1: command
CREATE TABLE r (k1 truth, k2 int4);

-- scene 2: command
INSERT INTO r SELECT (CAST('{0,1}' AS int4[]))[1] = 1, (CAST('{3,6,7}' AS int4[]))[1 + g] FROM generate_series(2, 2) AS g;

-- scene 3: command
CREATE TABLE p (k1 truth, k2 int4) PARTITION BY range (k1, k2);

-- scene 4: command
CREATE TABLE p_1 PARTITION OF p  FOR VALUES FROM ('f', 7) TO ('t', 0);

-- scene 5: command
CREATE TABLE p_3 PARTITION OF p  FOR VALUES FROM ('t', 1) TO (maxvalue, maxvalue);

-- scene 6: command
CREATE TABLE p_5 PARTITION OF p  FOR VALUES FROM ('f', 0) TO ('f', 7);

-- scene 7: command
INSERT INTO p SELECT k1, k2 FROM r;

-- step 8: query
SELECT 1 FROM p AS b WHERE b.k1 BETWEEN 'f' AND 'f';

-- evidence 9: query
SELECT 1 FROM p AS b WHERE b.k1 BETWEEN 'f' AND 'f';

-- evidence 10: query
SET enable_hashjoin = 'off';
SET enable_mergejoin = 'off';
SET enable_memoize = 'off';
SET enable_partition_pruning = 'off';
SET max_parallel_workers_per_gather = '0';
SELECT 1 FROM p AS b WHERE b.k1 BETWEEN 'f' AND 'f';
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_memoize;
RESET enable_partition_pruning;
RESET max_parallel_workers_per_gather;

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
