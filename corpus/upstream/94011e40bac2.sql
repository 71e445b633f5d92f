--   step 6: 1 row missing, 1 surplus, of 1: WHERE selects another number of rows than meet it
--
--   finding   94011e40bac2, by the oracle norec (WHERE selects another number of rows than meet it)
--   case      7/user_sql/0; it shows at step 6 below
--   modes     plain
--   shows     shows in 3 of 3 runs
--   blame     upstream, upstream shows it without any patch
--   samples   filtered
--   arm       upstream: build 0d6089262ef9, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected:
--     these rows, which are missing:
--       0
--     query: SELECT count(*) FROM b WHERE t COLLATE "C" IN (SELECT t FROM a)
--
--   actual:
--     these rows, which are surplus:
--       1
--     query: SELECT COALESCE(sum(CASE WHEN t COLLATE "C" IN (SELECT t FROM a) THEN 1 ELSE 0 END), 0) FROM b
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/94011e40bac2.sql --arm upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "user_sql", "case_id": "7/user_sql/0", "oracle": "norec", "fingerprint": "94011e40bac2", "arms": ["upstream", "upstream"]}

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

-- sample {"name": "filtered"}

-- scene 0: command may_fail
CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);

-- scene 1: command may_fail
CREATE TABLE a (t text COLLATE ci);

-- scene 2: command may_fail
CREATE TABLE b (t text);

-- scene 3: command may_fail
INSERT INTO a SELECT 'x';

-- scene 4: command may_fail
INSERT INTO a SELECT 'X';

-- scene 5: command may_fail
INSERT INTO b VALUES  ('X');

-- step 6: query may_fail
SELECT 1 FROM b WHERE t COLLATE "C" IN (SELECT t FROM a);

-- evidence 7: query may_fail
SELECT count(*) FROM b WHERE t COLLATE "C" IN (SELECT t FROM a);

-- evidence 8: query may_fail
SELECT COALESCE(sum(CASE WHEN t COLLATE "C" IN (SELECT t FROM a) THEN 1 ELSE 0 END), 0) FROM b;

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
