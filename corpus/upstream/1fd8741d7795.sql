--   master crashes: assertion list_length(rcexpr->inputcollids) == nopers in src/backend/executor/execExpr.c (as all arms do)
--
--   finding   1fd8741d7795, by the oracle crash (assertion list_length(rcexpr->inputcollids) == nopers in src/backend/executor/execExpr.c)
--   case      1/user_sql/0; it shows at step 1 below
--   modes     plain
--   shows     shows in 3 of 3 runs
--   blame     upstream, master shows it without any patch
--   arm       master: build b31952c5bdad, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4, series 0001-Fix-the-number-of-hash-buckets-when-the-hash-
--             table-i.patch 0002-Revert-postgres_fdw-s-remote-sampling-for-ANALYZE.patch
--   arm       patched: build 27c698d0d0ef, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4, series 0001-Fix-the-number-of-hash-buckets-when-the-hash-
--             table-i.patch 0002-Revert-postgres_fdw-s-remote-sampling-for-ANALYZE.patch 0000-Clear-
--             AuxProcessResourceOwner-s-hash-table-for-its-n.patch 0001-Deduplicate-entries-of-ResourceOwner-s-
--             hash-table.patch 0002-Create-COPY-s-multi-insert-slots-in-the-per-query-co.patch 0003-Add-blocked-
--             Bloom-filters-of-hash-values.patch 0004-Use-Bloom-filters-in-hash-joins-with-more-than-one-b.patch
--             0005-Use-Bloom-filters-in-left-full-and-anti-hash-joins.patch 0006-Stop-using-a-hash-join-s-Bloom-
--             filter-while-that-doe.patch 0007-Delay-look-ups-in-a-hash-join-s-Bloom-filter-until-t.patch
--             0008-Start-a-hash-join-s-Bloom-filter-when-batches-have-t.patch 0009-Make-room-for-a-better-Bloom-
--             filter-in-hash-joins.patch 0010-Share-a-Bloom-filter-between-the-processes-of-a-Para.patch 0011-Don-
--             t-let-sets-of-clause-serials-grow-with-the-numbe.patch 0012-Find-equivalence-members-of-child-
--             relations-without-.patch 0013-Make-hash-buckets-when-all-tuples-of-a-batch-are-the.patch 0014-Have-
--             the-remote-server-take-ANALYZE-s-sample-of-a-fo.patch 0015-Use-shared-Bloom-filters-in-Parallel-
--             Hash-left-full-.patch
--   arm       upstream: build 0d6089262ef9, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected:
--     the server stays up
--
--   actual:
--     TRAP: failed Assert("list_length(rcexpr->inputcollids) == nopers"), File: "../source/src/backend/executor/execExpr.c", Line: 2035, PID: 15299
--     postgres: postgres duel_reduction [local] EXPLAIN(ExceptionalCondition+0x5d)[0x555555b17f8d]
--     ExecInitExprRec at execExpr.c:2035 (discriminator 1)
--     ExecInitExprRec at execExpr.c:1800 (discriminator 5)
--     ExecInitExprRec at execExpr.c:2329 (discriminator 2)
--     ExecInitExprRec at execExpr.c:2456
--     postgres: postgres duel_reduction [local] EXPLAIN(ExecInitExpr+0x95)[0x555555853c95]
--     postgres: postgres duel_reduction [local] EXPLAIN(ExecInitTableFuncScan+0x130)[0x555555897b30]
--     postgres: postgres duel_reduction [local] EXPLAIN(ExecInitNode+0x2ad)[0x555555867b0d]
--     postgres: postgres duel_reduction [local] EXPLAIN(ExecInitNestLoop+0x7d)[0x5555558928dd]
--     postgres: postgres duel_reduction [local] EXPLAIN(ExecInitNode+0x22f)[0x555555867a8f]
--     postgres: postgres duel_reduction [local] EXPLAIN(standard_ExecutorStart+0x3a5)[0x555555860e05]
--     ... 21 more lines
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/1fd8741d7795.sql --arm master --arm patched --arm upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "user_sql", "case_id": "1/user_sql/0", "oracle": "crash", "fingerprint": "1fd8741d7795", "arms": ["master", "master"]}

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

-- scene 0: command may_fail
CREATE TABLE t (c text);

-- step 1: command may_fail
EXPLAIN SELECT 1 FROM t, json_table(CASE WHEN ROW(1, t.c) < ROW(1, t.c) THEN NULL END, '$' COLUMNS (n integer));

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
