--   step 2: row 1 of 2 must precede the row before it
--
--   finding   3bbdc814773a, by the oracle order (rows that are not sorted under plan Sort, Seq Scan)
--   case      1/typed/37, shortened by hand; it shows at step 2 below
--   modes     plain
--   samples   ordered
--   arm       up: build 0d6089262ef9, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected:
--     rows in the order of c1, where row 1 precedes row 0
--
--   actual:
--       0: B
--       1: a
--     plan: Sort(Seq Scan)
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/3bbdc814773a.sql --arm up=upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "typed", "case_id": "1/typed/37", "oracle": "order", "fingerprint": "3bbdc814773a", "arms": ["up", "up"]}

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

-- sample {"name": "ordered"}

-- scene 0: command
CREATE TABLE t (x text COLLATE "C");

-- scene 1: command
INSERT INTO t VALUES ('a'), ('B');

-- step 2: query
SELECT CASE WHEN false THEN x COLLATE "und-x-icu" ELSE x END FROM t ORDER BY 1;

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
