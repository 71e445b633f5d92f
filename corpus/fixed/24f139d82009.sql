--   step 8: Original Hash Batches of Hash: 131072, at most 64 kB for pointers to their files (reference: 8192)
--
--   finding   24f139d82009, by the oracle memory (Original Hash Batches of Hash under plan Aggregate, Anti Hash Join, Function Scan, Nested Loop, Seq Scan)
--   case      3/hash_growth/6; it shows at step 8 below
--   modes     no_loops
--   samples   explained
--   arm       master: build b31952c5bdad, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4, series 0001-Fix-the-number-of-hash-buckets-when-the-hash-
--             table-i.patch 0002-Revert-postgres_fdw-s-remote-sampling-for-ANALYZE.patch
--   arm       patched: build f05ad28c06de, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4, series 0001-Fix-the-number-of-hash-buckets-when-the-hash-
--             table-i.patch 0002-Revert-postgres_fdw-s-remote-sampling-for-ANALYZE.patch 0001-Deduplicate-entries-
--             of-ResourceOwner-s-hash-table.patch 0002-Create-COPY-s-multi-insert-slots-in-the-per-query-co.patch
--             0003-Use-Bloom-filters-in-hash-joins-with-more-than-one-b.patch 0004-Don-t-let-sets-of-clause-
--             serials-grow-with-the-numbe.patch 0005-Find-equivalence-members-of-child-relations-without-.patch
--             0006-Make-hash-buckets-when-all-tuples-of-a-batch-are-the.patch 0007-Have-the-remote-server-take-
--             ANALYZE-s-sample-of-a-fo.patch
--
--   expected, as master did:
--     at most 64 kB for pointers to their files (reference: 8192)
--
--   actual, as patched did:
--     131072
--     plan: Aggregate(Anti Hash Join(Function Scan, Hash(Nested Loop(Nested Loop(Seq Scan, Function Scan), Function Scan))))
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/fixed/24f139d82009.sql
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "hash_growth", "case_id": "3/hash_growth/6", "oracle": "memory", "fingerprint": "24f139d82009", "arms": ["master", "patched"]}

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

-- mode {"name": "no_loops"}
SET enable_nestloop = 'off';

-- scene 0: command
CREATE TABLE r1 (k1 uuid, k2 int4 NOT NULL, i1 int4 NOT NULL, i2 int4 NOT NULL, i3 int4 NOT NULL, w1 text COLLATE "C");

-- scene 1: command
INSERT INTO r1 (k1, k2, i1, i2, i3, w1) SELECT CAST(lpad(CAST(CASE WHEN g % 100 >= 1 THEN g / 2 % 9973 END AS text), 32, '0') AS uuid) AS k1, CAST(g / 2 % 9973 % 10 + g % 3 / 2 AS int4) AS k2, CAST(g AS int4) AS i1, CAST(g % 20 AS int4) AS i2, CAST(g % 20 / 4 AS int4) AS i3, CASE WHEN g % 10 = 0 THEN repeat(md5(CAST(g AS text)), 90) ELSE repeat(md5(CAST(g AS text)), 1 + g % 3) END AS w1 FROM generate_series(1, 100) AS g;

-- scene 2: command
ANALYZE r1;

-- scene 3: command
CREATE FUNCTION grown4() RETURNS SETOF r1 LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1000000000 AS 'BEGIN RETURN QUERY SELECT * FROM r1 WHERE i1 <= 10; END';

-- scene 4: command
SET from_collapse_limit = 1;

-- scene 5: command
SET join_collapse_limit = 1;

-- scene 6: command
SET work_mem = '64kB';

-- scene 7: command
SET hash_mem_multiplier = 1;

-- step 8: query
SELECT count(*), sum(hashtextextended(q::text, 0)) FROM (SELECT a1.k1, a1.i1, a2.k1, a2.i1, right(a1.w1, 8), right(a2.w1, 8) FROM grown4() AS a1 LEFT JOIN (SELECT k1, k2, i1, i2, i3, w1 FROM r1, generate_series(i1, i1) AS s1, generate_series(i1, i1) AS s2 WHERE i1 <= 20) AS a2 ON a1.k1::text = a2.k1::text AND a1.k2 = a2.k2 WHERE a2.k1 IS NULL) AS q;
-- evidence 9: query
EXPLAIN (ANALYZE, BUFFERS, SETTINGS, TIMING OFF) SELECT count(*), sum(hashtextextended(q::text, 0)) FROM (SELECT a1.k1, a1.i1, a2.k1, a2.i1, right(a1.w1, 8), right(a2.w1, 8) FROM grown4() AS a1 LEFT JOIN (SELECT k1, k2, i1, i2, i3, w1 FROM r1, generate_series(i1, i1) AS s1, generate_series(i1, i1) AS s2 WHERE i1 <= 20) AS a2 ON a1.k1::text = a2.k1::text AND a1.k2 = a2.k2 WHERE a2.k1 IS NULL) AS q;

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;

