--   1 row missing, 1 surplus, of 1: rows change when plans are hashed (as all arms do)
--
--   finding   8dce056f8619, by the oracle dqp
--   case      of the same fault as 654f2797f80a, written by hand; it shows at step 10 below
--   modes     replanned, partitionwise (partly)
--   arm       up: build 0d6089262ef9, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected, as with enable_partitionwise_join = off:
--     2 | NULL | NULL | NULL
--
--   actual:
--     2 | NULL | NULL | 1
--
--   plan:
--     Nested Loop Left Join
--       Join Filter: (r.k = p.k)
--       ->  Nested Loop Left Join
--             Join Filter: ((p.k = q.k) AND (p.b = q.b))
--             ->  Seq Scan on p1 p
--             ->  Seq Scan on q1 q
--       ->  Index Scan using r1_b_idx on r1 r
--             Index Cond: (b = COALESCE(q.b, 1))
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/8dce056f8619.sql --arm up=upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "merged_bounds", "case_id": "1/merged_bounds/216", "oracle": "dqp", "fingerprint": "8dce056f8619", "arms": ["up", "up"]}

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

-- mode {"name": "replanned"}

-- mode {"name": "partitionwise (partly)"}
SET enable_partitionwise_join = 'on';

-- scene 0: command
CREATE TABLE p (k int, b int) PARTITION BY LIST (k);

-- scene 1: command
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);

-- scene 2: command
CREATE TABLE q (k int, b int) PARTITION BY LIST (k);

-- scene 3: command
CREATE TABLE q1 PARTITION OF q FOR VALUES IN (1);

-- scene 4: command
CREATE TABLE r (k int, b int) PARTITION BY LIST (k);

-- scene 5: command
CREATE TABLE r1 PARTITION OF r FOR VALUES IN (1);

-- scene 6: command
INSERT INTO p VALUES (1, 2);

-- scene 7: command
INSERT INTO r SELECT 1, g FROM generate_series(1, 1000) AS g;

-- scene 8: command
CREATE INDEX ON r (b);

-- scene 9: command
ANALYZE p, q, r;

-- step 10: query
SELECT p.b, q.b, c, r.b FROM p LEFT JOIN (SELECT k, b, coalesce(b, 1) AS c FROM q) AS q ON p.k = q.k AND p.b = q.b LEFT JOIN r ON r.k = p.k AND r.b = c;

-- evidence 11: query
SELECT p.b, q.b, c, r.b FROM p LEFT JOIN (SELECT k, b, coalesce(b, 1) AS c FROM q) AS q ON p.k = q.k AND p.b = q.b LEFT JOIN r ON r.k = p.k AND r.b = c;

-- evidence 12: query
SET enable_partitionwise_join = 'off';
SELECT p.b, q.b, c, r.b FROM p LEFT JOIN (SELECT k, b, coalesce(b, 1) AS c FROM q) AS q ON p.k = q.k AND p.b = q.b LEFT JOIN r ON r.k = p.k AND r.b = c;
RESET enable_partitionwise_join;

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
