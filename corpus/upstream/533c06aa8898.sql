--   upstream crashes: assertion join_clause_is_movable_into(rinfo, joinrel->relids, join_and_req) in src/backend/optimizer/util/relnode.c (as all arms do)
--
--   finding   533c06aa8898, by the oracle crash (assertion join_clause_is_movable_into(rinfo, joinrel->relids, join_and_req) in src/backend/optimizer/util/relnode.c)
--   case      of the same fault as 5b7ca3588a89, written by hand; it shows at step 6 below
--   modes     partitionwise (partly)
--   arm       upstream: build 0d6089262ef9, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected:
--     the server stays up
--
--   actual:
--     TRAP: failed Assert("join_clause_is_movable_into(rinfo, joinrel->relids, join_and_req)"), File: "../source/src/backend/optimizer/util/relnode.c", Line: 1747, PI...
--     postgres: postgres duel_replay [local] SELECT(ExceptionalCondition+0x5d)[0x555555b1892d]
--     postgres: postgres duel_replay [local] SELECT(get_joinrel_parampathinfo+0x415)[0x55555591da55]
--     postgres: postgres duel_replay [local] SELECT(create_nestloop_path+0xb7)[0x555555912f27]
--     try_nestloop_path at joinpath.c:819
--     postgres: postgres duel_replay [local] SELECT(add_paths_to_joinrel+0xfef)[0x5555558dac8f]
--     populate_joinrel_with_paths at joinrels.c:925
--     try_partitionwise_join at joinrels.c:1676
--     postgres: postgres duel_replay [local] SELECT(make_join_rel+0xdf)[0x5555558dd61f]
--     postgres: postgres duel_replay [local] SELECT(join_search_one_level+0x119)[0x5555558dd829]
--     postgres: postgres duel_replay [local] SELECT(standard_join_search+0x5b)[0x5555558c772b]
--     postgres: postgres duel_replay [local] SELECT(make_one_rel+0x1b4)[0x5555558c7b44]
--     ... 18 more lines
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/533c06aa8898.sql --arm upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "partitioned_joins", "case_id": "11/partitioned_joins/72", "oracle": "crash", "fingerprint": "533c06aa8898", "arms": ["upstream", "upstream"]}

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
CREATE TABLE p (a int, b int) PARTITION BY LIST (a);

-- scene 1: command
CREATE TABLE p1 PARTITION OF p DEFAULT;

-- scene 2: command
CREATE TABLE r (a int PRIMARY KEY, b int);

-- scene 3: command
CREATE TABLE x (a int) PARTITION BY LIST (a);

-- scene 4: command
CREATE TABLE x1 PARTITION OF x DEFAULT;

-- scene 5: command
CREATE INDEX ON x (a);

-- step 6: query
SELECT 1 FROM r AS q WHERE EXISTS (SELECT 1 FROM (SELECT p.a, p.b + 0 AS c FROM p LEFT JOIN r ON p.a = r.a) AS s JOIN x ON s.a = x.a WHERE x.a = q.a AND s.c = q.b) GROUP BY ();

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
