--   a crashes: assertion bms_num_members(child_relids1) == bms_num_members(rel1->relids) in src/backend/optimizer/path/joinrels.c (as all arms do)
--
--   finding   14484eee70d8, by the oracle crash (assertion bms_num_members(child_relids1) == bms_num_members(rel1->relids) in src/backend/optimizer/path/joinrels.c)
--   case      2027/partitioned_joins/1376; it shows at step 5 below
--   modes     partitionwise (partly)
--   arm       a: build 540d0a6a642d, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--   arm       b: build 540d0a6a642d, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected:
--     the server stays up
--
--   actual:
--     TRAP: failed Assert("bms_num_members(child_relids1) == bms_num_members(rel1->relids)"), File: "../source/src/backend/optimizer/path/joinrels.c", Line: 1921, PID...
--     postgres: postgres duel_reduction [local] SELECT(ExceptionalCondition+0x5d)[0x555555b17f8d]
--     get_matching_part_pairs at joinrels.c:1921
--     postgres: postgres duel_reduction [local] SELECT(make_join_rel+0xdf)[0x5555558dcc7f]
--     postgres: postgres duel_reduction [local] SELECT(join_search_one_level+0x119)[0x5555558dce89]
--     postgres: postgres duel_reduction [local] SELECT(standard_join_search+0x5b)[0x5555558c6d8b]
--     postgres: postgres duel_reduction [local] SELECT(make_one_rel+0x1b4)[0x5555558c71a4]
--     postgres: postgres duel_reduction [local] SELECT(query_planner+0x136)[0x5555558edf76]
--     grouping_planner at planner.c:1553
--     postgres: postgres duel_reduction [local] SELECT(subquery_planner+0xb03)[0x5555558f72b3]
--     postgres: postgres duel_reduction [local] SELECT(standard_planner+0x115)[0x5555558f7655]
--     postgres: postgres duel_reduction [local] SELECT(pg_plan_query+0x4a)[0x5555559f72fa]
--     ... 13 more lines
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/14484eee70d8.sql --arm a=upstream --arm b=upstream
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
CREATE TABLE r3 (i3 int4) PARTITION BY range (i3);

-- scene 1: command
CREATE TABLE r3_1 PARTITION OF r3  FOR VALUES FROM (minvalue) TO (1);

-- scene 2: command
CREATE TABLE r4 (i3 int4) PARTITION BY range (i3);

-- scene 3: command
CREATE TABLE r4_1 PARTITION OF r4  FOR VALUES FROM (minvalue) TO (1);

-- scene 4: command
CREATE TABLE r4_4 PARTITION OF r4 DEFAULT;

-- step 5: query
SELECT 1 FROM r3 AS a4 INNER JOIN (r4 AS a1 LEFT JOIN r4 AS a2 USING (i3) INNER JOIN r4 AS a3 ON a2.i3 = a3.i3 AND a3.i3 = ANY(ARRAY[1])) ON a1.i3 = a4.i3;

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
