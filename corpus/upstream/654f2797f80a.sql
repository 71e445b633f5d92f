--   up raises an internal error: XX000 variable not found in subplan target list in fix_upper_expr_mutator (as all arms do)
--
--   finding   654f2797f80a, by the oracle internal_error (XX000 variable not found in subplan target list in
--             fix_upper_expr_mutator)
--   case      1/merged_bounds/216, shortened by hand; it shows at step 8 below
--   modes     partitionwise (partly)
--   arm       up: build 0d6089262ef9, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected:
--     no error of SQLSTATE class XX
--
--   actual:
--     ERROR: XX000: variable not found in subplan target list
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/654f2797f80a.sql --arm up=upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "merged_bounds", "case_id": "1/merged_bounds/216", "oracle": "internal_error", "fingerprint": "654f2797f80a", "arms": ["up", "up"]}

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
INSERT INTO p SELECT 1, g FROM generate_series(1, 1000) AS g;

-- scene 5: command
INSERT INTO q VALUES (1, 1);

-- scene 6: command
CREATE INDEX ON p (b);

-- scene 7: command
ANALYZE p, q;

-- step 8: query
SELECT count(*) FROM p WHERE (k, b) IN (SELECT k, b - 1 FROM q) GROUP BY ROLLUP (b);

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
