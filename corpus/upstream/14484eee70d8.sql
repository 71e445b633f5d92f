--   a crashes: assertion bms_num_members(child_relids1) == bms_num_members(rel1->relids) in src/backend/optimizer/path/joinrels.c (as all arms do)
--
--   finding   14484eee70d8, by the oracle crash (assertion bms_num_members(child_relids1) == bms_num_members(rel1->relids) in src/backend/optimizer/path/joinrels.c)
--   case      2027/partitioned_joins/1376; it shows at step 7 below
--   modes     partitionwise (partly)
--   arm       a: build 540d0a6a642d, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--   arm       b: build 540d0a6a642d, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected, as a did:
--     the server stays up
--
--   actual, as a did:
--     TRAP: failed Assert("bms_num_members(child_relids1) == bms_num_members(rel1->relids)"), File: "../source/src/backend/optimizer/path/joinrels.c", Line: 1921, PID...
--     get_matching_part_pairs at joinrels.c:1921
--     grouping_planner at planner.c:1553
--     set_subquery_pathlist at allpaths.c:2636
--     ... 18 more lines
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/14484eee70d8.sql --arm a=master --arm b=master
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "partitioned_joins", "case_id": "2027/partitioned_joins/1376", "oracle": "crash", "fingerprint": "14484eee70d8", "arms": ["a", "a"]}

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

-- mode {"name": "partitionwise (partly)"}
SET enable_partitionwise_join = 'on';

-- scene 0: command
CREATE TABLE r3 (i1 int4 NOT NULL, i2 int4 NOT NULL, i3 int4 NOT NULL, d1 date, w1 text COLLATE "C", PRIMARY KEY (i3, i1)) PARTITION BY RANGE (i3);

-- scene 1: command
CREATE TABLE r3_1 PARTITION OF r3 FOR VALUES FROM (MINVALUE) TO (1) PARTITION BY RANGE (i3);

-- scene 2: command
CREATE TABLE r3_1_1 PARTITION OF r3_1 FOR VALUES FROM (MINVALUE) TO (22);

-- scene 3: command
CREATE TABLE r4 (t1 varchar(200) COLLATE "C", i2 int4 NOT NULL, i1 int8 NOT NULL, n1 numeric(10,1) NOT NULL, t2 varchar(200) COLLATE "C", w1 text COLLATE "C", u1 uuid NOT NULL, i3 int4 NOT NULL, PRIMARY KEY (i3, i1)) PARTITION BY RANGE (i3);

-- scene 4: command
CREATE TABLE r4_1 PARTITION OF r4 FOR VALUES FROM (MINVALUE) TO (1) PARTITION BY RANGE (i3);

-- scene 5: command
CREATE TABLE r4_1_1 PARTITION OF r4_1 FOR VALUES FROM (MINVALUE) TO (22);

-- scene 6: command
CREATE TABLE r4_4 PARTITION OF r4 DEFAULT;

-- step 7: query
SELECT count(*), sum(hashtextextended(q::text, 0)) FROM (SELECT a4.d1, a4.i3, sum(a3.i3), count(a1.t2), max(a4.i3), max(length(a1.w1)), max(length(a3.w1)), max(length(a2.w1)), max(length(a4.w1)) FROM r3 AS a4 JOIN (r4 AS a1 LEFT JOIN r4 AS a2 USING (t1, i3) JOIN r4 AS a3 ON a2.i3 = a3.i3 AND a3.i3 = ANY (ARRAY[15, 1, 40, 5, 1, 51])) ON a1.i3 = a4.i3 AND a2.i2 = a4.i2 AND a2.i3 = a4.i3 WHERE (a2.i2, a1.i3) < (17, 22) AND 'true'::bool GROUP BY 1, 2) AS q;

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
