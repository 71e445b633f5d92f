--   step 2: row 2 of 6 must precede the row before it
--
--   finding   4cfb7a7b549e, by the oracle order (rows that are not sorted under plan Mixed Aggregate, Seq Scan)
--   case      written by hand; it shows at step 2 below
--   modes     plain
--   samples   ordered
--   arm       upstream: build 0d6089262ef9, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected:
--     rows in the order of c1, c2, where row 2 precedes row 1
--
--   actual:
--       1: NULL | 1
--       2: 1 | 2
--     plan: Sort(Mixed Aggregate(Seq Scan))
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/4cfb7a7b549e.sql --arm upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "script", "case_id": "script", "oracle": "order", "fingerprint": "4cfb7a7b549e", "arms": ["upstream", "upstream"]}

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
CREATE TABLE t (i int);

-- scene 1: command
INSERT INTO t VALUES (1), (2);

-- step 2: query
SELECT 1 AS c, i FROM t GROUP BY CUBE (1, 2) ORDER BY 1, 2;

-- evidence 3: query
WITH v AS (SELECT row_number() OVER () AS n, q.* FROM (
SELECT 1 AS c, i FROM t GROUP BY CUBE (1, 2) ORDER BY 1, 2
) AS q (c1, c2)), k AS (SELECT n, c1 AS k1, c2 AS k2 FROM v WHERE n > 0), p AS (SELECT *, lag(n) OVER () AS m, lag(k1) OVER () AS p1, lag(k2) OVER () AS p2 FROM k) SELECT n, p1, k1, p2, k2 FROM p WHERE m = n - 1 AND (CASE WHEN p1 IS NOT DISTINCT FROM NULL AND k1 IS NOT DISTINCT FROM NULL THEN false WHEN p1 IS NOT DISTINCT FROM NULL THEN true WHEN k1 IS NOT DISTINCT FROM NULL THEN false ELSE k1 < p1 END OR (k1 IS NOT DISTINCT FROM p1 AND CASE WHEN p2 IS NOT DISTINCT FROM NULL AND k2 IS NOT DISTINCT FROM NULL THEN false WHEN p2 IS NOT DISTINCT FROM NULL THEN true WHEN k2 IS NOT DISTINCT FROM NULL THEN false ELSE k2 < p2 END));

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
