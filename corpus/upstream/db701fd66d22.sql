--   step 0: binary input: 22P03 in oidvectorrecv
--
--   finding   db701fd66d22, by the oracle binary_format (binary input: 22P03 in oidvectorrecv)
--   case      1/user_sql/0; it shows at step 0 below
--   modes     plain
--   shows     shows in 3 of 3 runs
--   blame     upstream, upstream shows it without any patch
--   samples   read_back
--   arm       upstream: build 0d6089262ef9, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected:
--     no error
--
--   actual:
--     ERROR 22P03: invalid oidvector data
--     CONTEXT: unnamed portal parameter $1
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/db701fd66d22.sql
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "user_sql", "case_id": "1/user_sql/0", "oracle": "binary_format", "fingerprint": "db701fd66d22", "arms": ["upstream", "upstream"]}

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

-- sample {"name": "read_back"}

-- step 0: query may_fail
SELECT CAST('' AS oidvector);

-- evidence 1: query may_fail
SELECT record_send(q) FROM (
SELECT CAST('' AS oidvector)
) AS q;

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
