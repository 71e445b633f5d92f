--   step 9: Peak Memory Usage of Hash: 1445 kB, at most 256 kB (allowed: 256 kB, reference: 241 kB)
--
--   finding   4145d3ee8c05, by the oracle memory (Peak Memory Usage of Hash under plan Aggregate, Hash Join, Seq Scan)
--   case      3/outer_joins/25, rewritten by hand; it shows at step 9 below
--   modes     plain
--   shows     shows in 3 of 3 runs
--   blame     one of the patches 1 to 2 of patched, pgduel blame narrows it down
--   samples   explained
--   arm       upstream: build 0d6089262ef9, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--   arm       patched: build 5faf8f5e0c6e, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4, series 0001-Fix-the-number-of-hash-buckets-when-the-hash-
--             table-i.patch 0002-Revert-postgres_fdw-s-remote-sampling-for-ANALYZE.patch 0001-Deduplicate-entries-
--             of-ResourceOwner-s-hash-table.patch 0002-Create-COPY-s-multi-insert-slots-in-the-per-query-co.patch
--             0003-Add-blocked-Bloom-filters-of-hash-values.patch 0004-Use-Bloom-filters-in-hash-joins-with-more-
--             than-one-b.patch 0005-Use-Bloom-filters-in-left-full-and-anti-hash-joins.patch 0006-Stop-using-a-
--             hash-join-s-Bloom-filter-while-that-doe.patch 0007-Delay-look-ups-in-a-hash-join-s-Bloom-filter-
--             until-t.patch 0008-Start-a-hash-join-s-Bloom-filter-when-batches-have-t.patch 0009-Make-room-for-a-
--             better-Bloom-filter-in-hash-joins.patch 0010-Share-a-Bloom-filter-between-the-processes-of-a-
--             Para.patch 0011-Don-t-let-sets-of-clause-serials-grow-with-the-numbe.patch 0012-Find-equivalence-
--             members-of-child-relations-without-.patch 0013-Make-hash-buckets-when-all-tuples-of-a-batch-are-
--             the.patch 0014-Have-the-remote-server-take-ANALYZE-s-sample-of-a-fo.patch
--
--   expected, as upstream did:
--     at most 256 kB (allowed: 256 kB, reference: 241 kB)
--
--   actual, as patched did:
--     1445 kB
--     plan: Aggregate(Hash Join(Seq Scan, Hash(Hash Join(Seq Scan, Hash(Seq Scan)))))
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/fixed/4145d3ee8c05.sql --arm upstream --arm patched
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "outer_joins", "case_id": "3/outer_joins/25", "oracle": "memory", "fingerprint": "4145d3ee8c05", "arms": ["upstream", "patched"]}

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

-- sample {"name": "explained"}

-- scene 0: command
CREATE TABLE t1 AS SELECT g AS k, repeat('x', 500) AS p FROM generate_series(1, 20000) g;

-- scene 1: command
CREATE TABLE t2 AS SELECT g AS k, repeat('y', 50) AS p FROM generate_series(1, 20000) g;

-- scene 2: command
CREATE TABLE t3 AS SELECT g AS k, repeat('z', 50) AS p FROM generate_series(1, 40000) g;

-- scene 3: command
ANALYZE t1, t2, t3;

-- scene 4: command
SET work_mem = '256kB';

-- scene 5: command
SET hash_mem_multiplier = 1;

-- scene 6: command
SET enable_mergejoin = off;

-- scene 7: command
SET enable_nestloop = off;

-- scene 8: command
SET max_parallel_workers_per_gather = 0;

-- step 9: query
SELECT count(*), sum(length(t1.p || t2.p || t3.p)) FROM t1 JOIN t2 ON t1.k = t2.k AND (t1.k * 3) % 3 = 0 AND (t2.k * 5) % 5 = 0 AND (t1.k * 7) % 7 = 0 JOIN t3 ON t3.k = t1.k;

-- evidence 10: query
EXPLAIN (ANALYZE, BUFFERS, SETTINGS, TIMING OFF) SELECT count(*), sum(length(t1.p || t2.p || t3.p)) FROM t1 JOIN t2 ON t1.k = t2.k AND (t1.k * 3) % 3 = 0 AND (t2.k * 5) % 5 = 0 AND (t1.k * 7) % 7 = 0 JOIN t3 ON t3.k = t1.k;

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
