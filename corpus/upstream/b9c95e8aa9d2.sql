--   step 10: 1 row missing, 0 surplus, of 1: a constant and its subquery differ
--
--   finding   b9c95e8aa9d2, by the oracle coddtest (a constant and its subquery differ)
--   case      4801/pruned_partitions/34; it shows at step 10 below
--   modes     plain
--   shows     shows in 3 of 3 runs
--   blame     upstream, up shows it without any patch
--   samples   folded
--   arm       up: build 0d6089262ef9, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected:
--     these rows, which are missing:
--       1
--
--   actual:
--     no others
--     query: SELECT 1 FROM p AS a WHERE a.k1 <= (SELECT CAST('[6,11)' AS int4range))
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/b9c95e8aa9d2.sql --arm up=upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "pruned_partitions", "case_id": "4801/pruned_partitions/34", "oracle": "coddtest", "fingerprint": "b9c95e8aa9d2", "arms": ["up", "up"]}

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

-- sample {"name": "folded"}

-- scene 0: command
CREATE TABLE r (k1 int4range, k2 int8);

-- scene 1: command
INSERT INTO r SELECT int4range(1, 1), g * 7 % 51 FROM generate_series(36, 36) AS g;

-- scene 2: command
CREATE TABLE p (k1 int4range, k2 int8) PARTITION BY hash (k2);

-- scene 3: command
CREATE TABLE p_2 PARTITION OF p FOR VALUES WITH (MODULUS 5, REMAINDER 1);

-- scene 4: command
CREATE TABLE p_3 PARTITION OF p FOR VALUES WITH (MODULUS 5, REMAINDER 2) PARTITION BY LIST (k1);

-- scene 5: command
CREATE TABLE p_5 PARTITION OF p FOR VALUES WITH (MODULUS 5, REMAINDER 4);

-- scene 6: command
CREATE TABLE p_3_2 PARTITION OF p_3 DEFAULT;

-- scene 7: command
INSERT INTO p SELECT k1, k2 FROM r;

-- scene 8: command
CREATE INDEX ON p (k2);

-- step 9: command
UPDATE pg_inherits SET inhdetachpending = true WHERE inhrelid = 'p_2'::regclass;

-- step 10: query
SELECT 1 FROM p AS a WHERE a.k1 <= CAST('[6,11)' AS int4range);

-- evidence 11: query
SELECT 1 FROM p AS a WHERE a.k1 <= (SELECT CAST('[6,11)' AS int4range));

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
