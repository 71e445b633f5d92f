--   upstream crashes: assertion join_clause_is_movable_into(rinfo, baserel->relids, joinrelids) in src/backend/optimizer/util/relnode.c (as all arms do)
--
--   finding   5b7ca3588a89, by the oracle crash (assertion join_clause_is_movable_into(rinfo, baserel->relids, joinrelids) in src/backend/optimizer/util/relnode.c)
--   case      11/partitioned_joins/72, shortened by hand; it shows at step 4 below
--   modes     plain
--   arm       upstream: build 0d6089262ef9, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected:
--     the server stays up
--
--   actual:
--     TRAP: failed Assert("join_clause_is_movable_into(rinfo, baserel->relids, joinrelids)"), File: "../source/src/backend/optimizer/util/relnode.c", Line: 1612, PID:...
--     postgres: postgres duel_replay [local] SELECT(ExceptionalCondition+0x5d)[0x555555b1892d]
--     postgres: postgres duel_replay [local] SELECT(get_baserel_parampathinfo+0x214)[0x55555591d604]
--     postgres: postgres duel_replay [local] SELECT(create_index_path+0x7e)[0x5555559112ce]
--     build_index_paths at indxpath.c:963
--     get_index_paths at indxpath.c:722
--     get_join_index_paths at indxpath.c:664
--     consider_index_join_outer_rels at indxpath.c:578
--     postgres: postgres duel_replay [local] SELECT(create_index_paths+0x350)[0x5555558d80e0]
--     set_plain_rel_pathlist at allpaths.c:783
--     set_append_rel_pathlist at allpaths.c:1271
--     postgres: postgres duel_replay [local] SELECT(make_one_rel+0x1a1)[0x5555558c7b31]
--     ... 18 more lines
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/5b7ca3588a89.sql --arm upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "partitioned_joins", "case_id": "11/partitioned_joins/72", "oracle": "crash", "fingerprint": "5b7ca3588a89", "arms": ["upstream", "upstream"]}

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

-- scene 0: command
CREATE TABLE p (a int, b int) PARTITION BY LIST (a);

-- scene 1: command
CREATE TABLE p1 PARTITION OF p DEFAULT;

-- scene 2: command
CREATE INDEX ON p (a);

-- scene 3: command
CREATE TABLE r (a int PRIMARY KEY, b int);

-- step 4: query
SELECT 1 FROM (SELECT p.a, p.b + 0 AS c FROM p LEFT JOIN r ON p.a = r.a) AS s JOIN r AS q ON s.a = q.a AND s.c = q.b GROUP BY ();

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
