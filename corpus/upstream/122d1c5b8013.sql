--   step 0: upstream raises an internal error: XX000 unexpected end of tuplestore in window_gettupleslot (as all arms do)
--
--   finding   122d1c5b8013, by the oracle internal_error (XX000 unexpected end of tuplestore in window_gettupleslot)
--   case      written by hand; it shows at step 0 below
--   modes     plain
--   shows     shows in 3 of 3 runs
--   blame     upstream, upstream shows it without any patch
--   arm       upstream: build 0d6089262ef9, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected:
--     no error of SQLSTATE class XX
--
--   actual:
--     ERROR: XX000: unexpected end of tuplestore
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/122d1c5b8013.sql --arm upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "script", "case_id": "script", "oracle": "internal_error", "fingerprint": "122d1c5b8013", "arms": ["upstream", "upstream"]}

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

-- step 0: query
SELECT max(s) FROM (SELECT sum(g) OVER (ROWS BETWEEN 100000 FOLLOWING AND UNBOUNDED FOLLOWING) AS s FROM generate_series(1, 100002) AS g) AS q;

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
