--   step 4: 0 rows missing, 1 surplus, of 0: rows change when tables become subqueries (as all arms do)
--
--   finding   2e7296e6a433, by the oracle optimization_fence (rows change when tables become subqueries)
--   case      1/regress/25; it shows at step 4 below
--   modes     plain
--   arm       up: flavor assert, base pg17 17.11
--
--   expected:
--     a GiST index on points finds the row that a subquery with OFFSET 0, which is scanned sequentially, has
--
--   actual:
--     it finds none, where the point is (NaN,NaN) (17.11)
--
--   The fault is that of dfe7b6335452, which dqp found: boxes with NaN on leaf pages. Another oracle found it here, since
--   a table that becomes a subquery is not read by its index.
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of any arm
--   Judge it: ./pgduel replay corpus/upstream/2e7296e6a433.sql --arm up=upstream
--   Written by pgduel 0.1.0; the analysis is by hand.

-- pgduel: {"generator": "regress", "case_id": "1/regress/25", "oracle": "optimization_fence", "fingerprint": "2e7296e6a433", "arms": ["up", "up"]}

\encoding UTF8
\set ON_ERROR_STOP off
\set ECHO queries
\pset pager off
\pset null '(null)'
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS duel CASCADE;
CREATE SCHEMA duel;
RESET client_min_messages;

CREATE EXTENSION IF NOT EXISTS btree_gist SCHEMA public;

SET search_path = duel, public;

-- sample {"name": "fenced"}

-- scene 0: command may_fail
CREATE TABLE POINT_TBL(f1 point);

-- scene 1: command may_fail
INSERT INTO point_tbl VALUES (' ( Nan , NaN )');

-- step 2: command may_fail
CREATE INDEX gpointind ON point_tbl USING gist (f1);

-- step 3: command may_fail
SET enable_seqscan = OFF;

-- step 4: query may_fail
SELECT 1 FROM point_tbl WHERE f1 <@ CAST('(0,0),(0,100),(100,100),(50,50),(100,0)' AS polygon);

-- evidence 5: query may_fail
SELECT 1 FROM (SELECT * FROM point_tbl OFFSET 0) AS point_tbl WHERE f1 <@ CAST('(0,0),(0,100),(100,100),(50,50),(100,0)' AS polygon);

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
