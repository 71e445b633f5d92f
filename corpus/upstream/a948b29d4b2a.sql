--   a crashes: signal 11 in is_dummy_rel < partition_bounds_merge < compute_partition_bounds (as all arms do)
--
--   finding   a948b29d4b2a, by the oracle crash (signal 11 in is_dummy_rel < partition_bounds_merge < compute_partition_bounds)
--   case      11/merged_bounds/2, shortened by hand; it shows at step 8 below
--   modes     partitionwise (partly)
--   arm       a: build 0d6089262ef9, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--   arm       b: build 0d6089262ef9, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected:
--     the server stays up
--
--   actual:
--     pgduel_probe: signal 11 in process 10281 led by 10281
--     postgres: postgres duel_reduction [local] SELECT(is_dummy_rel+0x0)[0x5555558dc230]
--     postgres: postgres duel_reduction [local] SELECT(partition_bounds_merge+0x24a)[0x55555594c16a]
--     compute_partition_bounds at joinrels.c:1832
--     try_partitionwise_join at joinrels.c:1676
--     postgres: postgres duel_reduction [local] SELECT(make_join_rel+0xdf)[0x5555558dd61f]
--     postgres: postgres duel_reduction [local] SELECT(join_search_one_level+0x119)[0x5555558dd829]
--     postgres: postgres duel_reduction [local] SELECT(standard_join_search+0x5b)[0x5555558c772b]
--     postgres: postgres duel_reduction [local] SELECT(make_one_rel+0x1b4)[0x5555558c7b44]
--     postgres: postgres duel_reduction [local] SELECT(query_planner+0x136)[0x5555558ee916]
--     grouping_planner at planner.c:1553
--     postgres: postgres duel_reduction [local] SELECT(subquery_planner+0xb03)[0x5555558f7c53]
--     ... 14 more lines
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/a948b29d4b2a.sql --arm a=upstream --arm b=upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "merged_bounds", "case_id": "11/merged_bounds/2", "oracle": "crash", "fingerprint": "a948b29d4b2a", "arms": ["a", "a"]}

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
CREATE TABLE r1 (k int) PARTITION BY LIST (k);

-- scene 1: command
CREATE TABLE r1_1 PARTITION OF r1 FOR VALUES IN (1, 3);

-- scene 2: command
CREATE TABLE r1_2 PARTITION OF r1 FOR VALUES IN (4);

-- scene 3: command
CREATE TABLE r2 (k int) PARTITION BY LIST (k);

-- scene 4: command
CREATE TABLE r2_1 PARTITION OF r2 FOR VALUES IN (2, 3);

-- scene 5: command
CREATE TABLE r2_2 PARTITION OF r2 FOR VALUES IN (4);

-- scene 6: command
INSERT INTO r1 VALUES (1), (3), (4);

-- scene 7: command
INSERT INTO r2 VALUES (2), (3), (4);

-- step 8: query
SELECT k FROM r1 FULL JOIN r2 USING (k) FULL JOIN r2 AS r3 USING (k);

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
