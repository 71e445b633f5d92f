--   step 6: Temp Written Blocks: 63, at most 24 + 8 for the last blocks of files, which may be partial
--
--   finding   dc7dfe8cab63, by the oracle memory (Temp Written Blocks under plan Aggregate, Anti Hash Join, Seq Scan)
--   case      31/partitioned_joins/0, reduced by hand; it shows at step 6 below
--   modes     hash_spilling
--   samples   explained
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/fixed/dc7dfe8cab63.sql --arm master --arm patched

-- pgduel: {"generator": "partitioned_joins", "case_id": "31/partitioned_joins/0", "oracle": "memory", "fingerprint": "dc7dfe8cab63", "arms": ["master", "patched"]}

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

DO $$ BEGIN CREATE ROLE pgduel_ordinary; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
ALTER SCHEMA duel OWNER TO pgduel_ordinary;

-- sample {"name": "explained"}

-- mode {"name": "hash_spilling"}
SET work_mem = '64kB';
SET hash_mem_multiplier = '1';
SET enable_mergejoin = 'off';
SET enable_nestloop = 'off';
SET max_parallel_workers_per_gather = '0';

-- scene 0: command
CREATE TABLE r1 (i1 int8);

-- scene 1: command
INSERT INTO r1 SELECT g FROM generate_series(1, 5000) AS g;

-- scene 2: command
CREATE TABLE r2 (i1 int8, w1 text);

-- scene 3: command
INSERT INTO r2 SELECT g, repeat(md5(g::text), 50) FROM generate_series(1, 50) AS g;

-- scene 4: command
ANALYZE r2;

-- scene 5: command
INSERT INTO r2 SELECT NULL, repeat(md5(g::text), 50) FROM generate_series(1, 200) AS g;

-- step 6: query
SELECT count(*), max(length(w1)) FROM r2 WHERE NOT EXISTS (SELECT FROM r1 WHERE r1.i1 = r2.i1);

-- evidence 7: query
EXPLAIN (ANALYZE, BUFFERS, SETTINGS, TIMING OFF) SELECT count(*), max(length(w1)) FROM r2 WHERE NOT EXISTS (SELECT FROM r1 WHERE r1.i1 = r2.i1);

-- end

RESET SESSION AUTHORIZATION;
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;

DISCARD TEMP;
DO $$ BEGIN DROP ROLE pgduel_ordinary; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END $$;
