--   step 10: 1 row missing, 1 surplus, of 1: transition tables and row triggers differ after INSERT
--
--   finding   62a398617686, by the oracle reported (transition tables and row triggers differ after INSERT)
--   case      written by hand; it shows at step 10 below
--   modes     plain
--   samples   reported
--   arm       up: build 0d6089262ef9, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected:
--     these rows, which are missing:
--       new | 1 | 2
--     query: SELECT version, a, b FROM changes WHERE level = 'ROW'
--
--   actual:
--     these rows, which are surplus:
--       new | 1 | NULL
--     query: SELECT version, a, b FROM changes WHERE level = 'STATEMENT'
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/62a398617686.sql --arm up=upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "script", "case_id": "script", "oracle": "reported", "fingerprint": "62a398617686", "arms": ["up", "up"]}

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

-- sample {"name": "reported"}

-- scene 0: command
CREATE TABLE p (a int, b int GENERATED ALWAYS AS (a * 2) STORED) PARTITION BY LIST (a);

-- scene 1: command
CREATE TABLE p1 (b int GENERATED ALWAYS AS (a * 2) STORED, a int);

-- scene 2: command
ALTER TABLE p ATTACH PARTITION p1 FOR VALUES IN (1);

-- scene 3: command
CREATE TABLE changes (level text, version text, a int, b int);

-- scene 4: command
CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF TG_LEVEL = 'ROW' THEN IF TG_OP <> 'INSERT' THEN INSERT INTO changes VALUES ('ROW', 'old', OLD.a, OLD.b); END IF; IF TG_OP <> 'DELETE' THEN INSERT INTO changes VALUES ('ROW', 'new', NEW.a, NEW.b); END IF; ELSE IF TG_OP <> 'INSERT' THEN INSERT INTO changes SELECT 'STATEMENT', 'old', a, b FROM old_rows; END IF; IF TG_OP <> 'DELETE' THEN INSERT INTO changes SELECT 'STATEMENT', 'new', a, b FROM new_rows; END IF; END IF; RETURN NULL; END $$;

-- scene 5: command
CREATE TRIGGER inserted AFTER INSERT ON p REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION watch();

-- scene 6: command
CREATE TRIGGER updated AFTER UPDATE ON p REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION watch();

-- scene 7: command
CREATE TRIGGER each_row AFTER INSERT OR UPDATE OR DELETE ON p FOR EACH ROW EXECUTE FUNCTION watch();

-- step 8: command
INSERT INTO p VALUES (1);

-- step 9: query
SELECT version, a, b FROM changes WHERE level = 'ROW';

-- step 10: query {"same_rows": "by triggers"}
SELECT version, a, b FROM changes WHERE level = 'STATEMENT';

-- evidence 11: query
SELECT version, a, b FROM changes WHERE level = 'ROW';

-- evidence 12: query
SELECT version, a, b FROM changes WHERE level = 'STATEMENT';

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
