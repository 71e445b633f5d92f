--   step 8: remote queries of f2, 3 samples: 3: SELECT relkind, relhassubclass, reltuples, relpages, pg_catalog.pg_relation_size(oid), CASE WHEN pg_catalog.pg_is_in_recovery() THEN -1 ELSE pg_catalog.pg_stat_get_live_tuples(oid) END, pg_catalog.current_setting('block_size') FROM pg_catalog.pg_class WHERE oid = 'duel.r2'::pg_catalog.regclass; EXPLAIN SELECT i2 FROM duel.r2; DECLARE c1 CURSOR FOR SELECT i2 FROM duel.r2
--
--   finding   9d7b75fdbdb0, by the oracle statistics (remote queries: off)
--   case      1/foreign_analyze/1; it shows at step 8 below
--   modes     plain
--   shows     shows in 3 of 3 runs
--   blame     view_planned_despite_off.patch, number 19 of the 19 patches of patched
--   arm       master: build b31952c5bdad, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4, series 0001-Fix-the-number-of-hash-buckets-when-the-hash-
--             table-i.patch 0002-Revert-postgres_fdw-s-remote-sampling-for-ANALYZE.patch
--   arm       patched: build 50ffd4df11b2, flavor assert, base pg17 17.11
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
--             Hash-left-full-.patch view_planned_despite_off.patch
--
--   expected, as master did:
--     2 remote queries: SELECT pg_catalog.pg_relation_size('duel.r2'::pg_catalog.regclass) / 8192; DECLARE c1 CURSOR FOR SELECT i2 FROM duel.r2
--
--   actual, as patched did:
--     3: SELECT relkind, relhassubclass, reltuples, relpages, pg_catalog.pg_relation_size(oid), CASE WHEN pg_catalog.pg_is_in_recovery() THEN -1 ELSE pg_catalog.pg_st...
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/fixed/9d7b75fdbdb0.sql
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "foreign_analyze", "case_id": "1/foreign_analyze/1", "oracle": "statistics", "fingerprint": "9d7b75fdbdb0", "arms": ["master", "patched"]}

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
DO $$ BEGIN BEGIN CREATE ROLE duel_guest LOGIN; GRANT SET ON PARAMETER log_statement, log_parameter_max_length TO duel_guest; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END; EXECUTE format('CREATE SERVER duel_loop FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host %L, port %L, dbname %L, application_name %L, options %L)', split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'), current_database(), 'duel led by %p', '-c log_statement=all -c log_parameter_max_length=0'); EXECUTE format('CREATE USER MAPPING FOR PUBLIC SERVER duel_loop OPTIONS (user %L, password_required %L)', 'duel_guest', 'false'); END $$;

-- scene 1: command
GRANT ALL PRIVILEGES ON SCHEMA duel TO duel_guest;

-- scene 2: command
CREATE TABLE r2_base (i2 int4);

-- scene 3: command
CREATE VIEW r2 AS SELECT * FROM r2_base;

-- scene 4: command
GRANT ALL PRIVILEGES ON TABLE r2 TO duel_guest;

-- scene 5: command
CREATE FOREIGN TABLE f2 (i2 int4) SERVER duel_loop OPTIONS (schema_name 'duel', table_name 'r2');

-- scene 6: command
DO $$ BEGIN ALTER FOREIGN TABLE f2 OPTIONS (ADD analyze_sampling 'off'); EXCEPTION WHEN duplicate_object THEN ALTER FOREIGN TABLE f2 OPTIONS (SET analyze_sampling 'off'); WHEN fdw_invalid_option_name THEN NULL; END $$;

-- step 7: command
ANALYZE f2;

-- step 8: query
SELECT 1;

-- evidence 9: query
SELECT * FROM pg_stats WHERE tablename = 'f2';

-- evidence 10: query
SELECT relname, reltuples FROM pg_class WHERE relname = 'f2';

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
