--   step 7: memory of execution: 1181 kB, 2.07 times as much
--
--   finding   8b7052cd2b34, by the oracle execution_cost (memory of execution under plan Anti Nested Loop, Function Scan, Memoize, Nested Loop, Right Hash Join, Seq Scan)
--   case      725/hash_growth/96; it shows at step 7 below
--   modes     hash_only (partly)
--   shows     shows in 3 of 3 runs
--   blame     0009-Make-room-for-a-better-Bloom-filter-in-hash-joins.patch, number 12 of the 22 patches of patched
--   samples   explained
--   suspect   patched, as master and upstream agree
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
--     memory of execution of 569.7 kB, or little more, in 20 rounds
--
--   actual, as patched did:
--     memory of execution of 1181 kB, beyond the margin in each round
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/fixed/1f173b9d7cb4.sql --arm master --arm patched --arm upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "hash_growth", "case_id": "725/hash_growth/96", "oracle": "execution_cost", "fingerprint": "8b7052cd2b34", "arms": ["master", "patched"]}

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

-- mode {"name": "hash_only (partly)"}
SET enable_nestloop = 'off';

-- scene 0: command
CREATE TABLE r1 (k1 int4, i1 int4);

-- scene 1: command
INSERT INTO r1 SELECT g, 1 FROM generate_series(1, 513) AS g;

-- scene 2: command
ANALYZE r1;

-- scene 3: command
CREATE TABLE r3 ();

-- scene 4: command
CREATE FUNCTION grown1() RETURNS SETOF r1 LANGUAGE plpgsql ROWS 10000000 AS $$BEGIN RETURN QUERY SELECT * FROM r1 WHERE i1 <= 1024; END$$;

-- scene 5: command
SET work_mem = '1MB';

-- scene 6: command
SET hash_mem_multiplier = 1;

-- step 7: query
SELECT EXISTS (SELECT FROM (SELECT k1 FROM r1, generate_series(1, i1)) AS a1 LEFT JOIN grown1() AS a2 ON a1.k1 = a2.k1 WHERE NOT EXISTS (SELECT WHERE 1 = a2.k1));

-- evidence 8: query
EXPLAIN (ANALYZE, BUFFERS, SETTINGS, TIMING OFF) SELECT EXISTS (SELECT FROM (SELECT k1 FROM r1, generate_series(1, i1)) AS a1 LEFT JOIN grown1() AS a2 ON a1.k1 = a2.k1 WHERE NOT EXISTS (SELECT WHERE 1 = a2.k1));

-- end

RESET ALL;
SET search_path = duel, public;
SET enable_nestloop = 'off';

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
