--   a crashes: assertion state->base.sortopt & TUPLESORT_ALLOWBOUNDED in src/backend/utils/sort/tuplesort.c (as all arms do)
--
--   finding   c0e287ac3124, by the oracle crash (assertion state->base.sortopt & TUPLESORT_ALLOWBOUNDED in src/backend/utils/sort/tuplesort.c)
--   case      1/user_sql/0; it shows at step 3 below
--   modes     plain
--   shows     shows in 3 of 3 runs
--   blame     upstream, a shows it without any patch
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
--     TRAP: failed Assert("state->base.sortopt & TUPLESORT_ALLOWBOUNDED"), File: "../source/src/backend/utils/sort/tuplesort.c", Line: 848, PID: 5668
--     postgres: postgres duel_reduction [local] SELECT(ExceptionalCondition+0x5d)[0x555555b1892d]
--     postgres: postgres duel_reduction [local] SELECT(tuplesort_set_bound+0xca)[0x555555b4e88a]
--     ExecIncrementalSort at nodeIncrementalSort.c:644
--     ExecProcNode at executor.h:278
--     ExecProcNode at executor.h:278
--     agg_retrieve_direct at nodeAgg.c:2364
--     postgres: postgres duel_reduction [local] SELECT(ExecSubPlan+0x3c8)[0x555555896428]
--     postgres: postgres duel_reduction [local] SELECT(ExecEvalSubPlan+0x2c)[0x55555585a6fc]
--     ExecInterpExpr at execExprInterp.c:1653
--     postgres: postgres duel_reduction [local] SELECT(ExecScan+0x18b)[0x55555586a1cb]
--     postgres: postgres duel_reduction [local] SELECT(standard_ExecutorRun+0x19b)[0x5555558602fb]
--     ... 15 more lines
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/c0e287ac3124.sql --arm a=upstream --arm b=upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "user_sql", "case_id": "1/user_sql/0", "oracle": "crash", "fingerprint": "c0e287ac3124", "arms": ["a", "a"]}

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
CREATE TABLE i (a int, b int);

-- scene 1: command may_fail
INSERT INTO i SELECT 1 FROM generate_series(1, 0) AS g;

-- scene 2: command may_fail
CREATE INDEX ON i (a);

-- step 3: query may_fail
SELECT (SELECT sum(1) FROM (SELECT b FROM i ORDER BY a, 1 LIMIT n)) FROM ((VALUES (NULL), (1))) AS o (n);

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
