--   step 1: 1 row missing, 1 surplus, of 1: a query is not its three parts, by where (as all arms do)
--
--   finding   6a16a0a2845a, by the oracle tlp (a query is not its three parts, by where)
--   case      1/regress/105; it shows at step 1 below
--   modes     partitioned
--   arm       master: base pg17 17.11
--
--   expected:
--     both queries beside step 1 have one row of one sum; ROW(JSON_VALUE('"aaa"', '$' RETURNING json)) is ("""aaa""")
--
--   actual:
--     the sums differ, and that row is (): the value is NULL within ROW and ARRAY, as with RETURNING jsonb
--
--   JSON_VALUE returning json or jsonb does not say that its result is not NULL: in ExecEvalJsonExprPath (execExprInterp.c),
--   that branch of JSON_VALUE_OP sets no *op->resnull, whose value before is what it was. ROW and ARRAY begin with all of
--   theirs true. 18.6 has the same lines.
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of any arm
--   Judge it: ./pgduel replay corpus/upstream/6a16a0a2845a.sql
--   Written by pgduel 0.1.0; what is expected is told by hand.

-- pgduel: {"generator": "regress", "case_id": "1/regress/105", "oracle": "tlp", "fingerprint": "6a16a0a2845a", "arms": ["master", "master"]}

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
CREATE TABLE jsonpaths AS SELECT '$' AS path;

-- step 1: query
SELECT JSON_VALUE('"aaa"', path RETURNING json) FROM jsonpaths;

-- evidence 2: query
SELECT count(*), sum(hashtextextended(CAST(q AS text), 0)) FROM (SELECT JSON_VALUE('"aaa"', path RETURNING pg_catalog.json) FROM jsonpaths) AS q;

-- evidence 3: query
SELECT count(*), sum(hashtextextended(CAST(q AS text), 0)) FROM ((SELECT JSON_VALUE('"aaa"', path RETURNING pg_catalog.json) FROM jsonpaths WHERE CAST(JSON_VALUE('"aaa"', path RETURNING pg_catalog.json) AS text) < '5' UNION ALL SELECT JSON_VALUE('"aaa"', path RETURNING pg_catalog.json) FROM jsonpaths WHERE NOT CAST(JSON_VALUE('"aaa"', path RETURNING pg_catalog.json) AS text) < '5') UNION ALL SELECT JSON_VALUE('"aaa"', path RETURNING pg_catalog.json) FROM jsonpaths WHERE CAST(JSON_VALUE('"aaa"', path RETURNING pg_catalog.json) AS text) < '5' IS NULL) AS q;

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
