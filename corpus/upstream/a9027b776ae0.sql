--   0 rows missing, 1 surplus, of 1: rows change when plans are sorted (as all arms do)
--
--   finding   a9027b776ae0, by the oracle dqp
--   case      of the same fault as aa96a2c6b413, written by hand; it shows at step 4 below
--   samples   replanned
--   modes     hash_only (partly), partitionwise (partly)
--   arm       up: build 0d6089262ef9, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected, as with enable_partitionwise_join = off:
--     14 | 4
--     NULL | 12
--
--   actual:
--     14 | 4
--
--   plan:
--     GroupAggregate
--       Group Key: ((y.a + x.a))
--       ->  Sort
--             Sort Key: ((y.a + x.a))
--             ->  Nested Loop
--                   ->  Seq Scan on p1 x
--                   ->  Hash Join
--                         Hash Cond: (y.k = z.k)
--                         Join Filter: (((y.a + x.a) = (y.a + x.a)) AND ((y.a + x.a) = (y.a + x.a)))
--                         ->  Hash Join
--                               Hash Cond: (p.k = y.k)
--                               ->  Sample Scan on p1 p
--                                     Sampling: system ('100'::real) REPEATABLE (COALESCE(x.a, 1))
--                                     Filter: (x.k = k)
--                               ->  Hash
--                                     ->  Index Scan using p1_k_idx on p1 y
--                                           Index Cond: (k = x.k)
--                         ->  Hash
--                               ->  Index Only Scan using p1_k_idx on p1 z
--                                     Index Cond: (k = x.k)
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/a9027b776ae0.sql --arm up=upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "merged_bounds", "case_id": "721/merged_bounds/34", "oracle": "dqp", "fingerprint": "a9027b776ae0", "arms": ["up", "up"]}

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

-- mode {"name": "hash_only (partly)"}
SET enable_nestloop = 'off';

-- mode {"name": "partitionwise (partly)"}
SET enable_partitionwise_join = 'on';

-- scene 0: command
CREATE TABLE p (k text, a int) PARTITION BY LIST (k);

-- scene 1: command
CREATE TABLE p1 PARTITION OF p FOR VALUES IN ('1');

-- scene 2: command
CREATE INDEX ON p (k);

-- scene 3: command
INSERT INTO p VALUES ('1', NULL), ('1', 7);

-- step 4: query
SELECT y.a + x.a AS sum, count(*) FROM p AS x JOIN (p AS y JOIN p AS z ON y.k = z.k) ON x.k = z.k JOIN LATERAL (SELECT * FROM p TABLESAMPLE SYSTEM (100) REPEATABLE (coalesce(x.a, 1))) AS s ON x.k = s.k GROUP BY 1;

-- evidence 5: query
SELECT y.a + x.a AS sum, count(*) FROM p AS x JOIN (p AS y JOIN p AS z ON y.k = z.k) ON x.k = z.k JOIN LATERAL (SELECT * FROM p TABLESAMPLE SYSTEM (100) REPEATABLE (coalesce(x.a, 1))) AS s ON x.k = s.k GROUP BY 1;

-- evidence 6: query
SET enable_partitionwise_join = 'off';
SELECT y.a + x.a AS sum, count(*) FROM p AS x JOIN (p AS y JOIN p AS z ON y.k = z.k) ON x.k = z.k JOIN LATERAL (SELECT * FROM p TABLESAMPLE SYSTEM (100) REPEATABLE (coalesce(x.a, 1))) AS s ON x.k = s.k GROUP BY 1;
RESET enable_partitionwise_join;

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
