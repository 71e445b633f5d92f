--   step 4: 1 row missing, 1 surplus, of 1: a query is not its three parts, by where
--
--   finding   a639e3dc2ada, by the oracle tlp (a query is not its three parts, by where)
--   case      1/typed/41; it shows at step 4 below
--   modes     partitioned
--   shows     shows in 3 of 3 runs
--   blame     upstream, upstream shows it without any patch
--   arm       upstream: build 302dd4d7924b, flavor coverage, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected:
--     these rows, which are missing:
--       4 | -1991926875136601346
--     query: SELECT count(*), sum(hashtextextended(CAST(q AS text), 0)) FROM (SELECT a1.c1 FROM (t3 AS b1 LEFT JOIN t2 ON JSON_QUERY(b1.c3, '$[*]' WITH UNCONDITIONAL ...
--
--   actual:
--     these rows, which are surplus:
--       3 | -4725256156238363470
--     query: SELECT count(*), sum(hashtextextended(CAST(q AS text), 0)) FROM ((SELECT a1.c1 FROM (t3 AS b1 LEFT JOIN t2 ON JSON_QUERY(b1.c3, '$[*]' WITH UNCONDITIONAL...
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/a639e3dc2ada.sql --arm upstream --flavor release
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "typed", "case_id": "1/typed/41", "oracle": "tlp", "fingerprint": "a639e3dc2ada", "arms": ["upstream", "upstream"]}

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

-- mode {"name": "partitioned"}

-- scene 0: command
CREATE TABLE t2 (c3 point);

-- scene 1: command
INSERT INTO t2 SELECT NULL FROM generate_series(1, 2);

-- scene 2: command
CREATE TABLE t3 (c3 jsonb);

-- scene 3: command
INSERT INTO t3 SELECT CASE g WHEN 1 THEN CAST('[]' AS jsonb) END FROM generate_series(1, 2) AS g;

-- step 4: query may_fail
SELECT a1.c1 FROM (t3 AS b1 LEFT JOIN t2 ON JSON_QUERY(b1.c3, '$[*]' WITH UNCONDITIONAL WRAPPER EMPTY ARRAY ON EMPTY) <= to_jsonb(1)) AS a1 (c1);

-- evidence 5: query may_fail
SELECT count(*), sum(hashtextextended(CAST(q AS text), 0)) FROM (SELECT a1.c1 FROM (t3 AS b1 LEFT JOIN t2 ON JSON_QUERY(b1.c3, '$[*]' WITH UNCONDITIONAL WRAPPER EMPTY ARRAY ON EMPTY) <= to_jsonb(1)) AS a1 (c1)) AS q;

-- evidence 6: query may_fail
SELECT count(*), sum(hashtextextended(CAST(q AS text), 0)) FROM ((SELECT a1.c1 FROM (t3 AS b1 LEFT JOIN t2 ON JSON_QUERY(b1.c3, '$[*]' WITH UNCONDITIONAL WRAPPER EMPTY ARRAY ON EMPTY) <= to_jsonb(1)) AS a1 (c1) WHERE CAST(a1.c1 AS text) < '5' UNION ALL SELECT a1.c1 FROM (t3 AS b1 LEFT JOIN t2 ON JSON_QUERY(b1.c3, '$[*]' WITH UNCONDITIONAL WRAPPER EMPTY ARRAY ON EMPTY) <= to_jsonb(1)) AS a1 (c1) WHERE NOT CAST(a1.c1 AS text) < '5') UNION ALL SELECT a1.c1 FROM (t3 AS b1 LEFT JOIN t2 ON JSON_QUERY(b1.c3, '$[*]' WITH UNCONDITIONAL WRAPPER EMPTY ARRAY ON EMPTY) <= to_jsonb(1)) AS a1 (c1) WHERE CAST(a1.c1 AS text) < '5' IS NULL) AS q;

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
