--   step 13: tables sampled of f1, 3 samples: of f1_far only
--
--   finding   a71224945768, by the oracle statistics (tables sampled: not chosen)
--   case      724/foreign_analyze/12; it shows at step 13 below
--   modes     plain
--   shows     shows in 3 of 3 runs
--   blame     0016-Have-the-remote-server-take-ANALYZE-s-sample-of-a-fo.patch, number 19 of the 22 patches of
--             patched
--   suspect   patched, as master and upstream agree
--   arm       master: build b31952c5bdad, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4, series 0001-Fix-the-number-of-hash-buckets-when-the-hash-
--             table-i.patch 0002-Revert-postgres_fdw-s-remote-sampling-for-ANALYZE.patch
--   arm       patched: build 81da53d26ab3, flavor assert, base pg17 17.11
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
--             relations-without-.patch 0013-Make-batches-of-hash-joins-independent-of-those-of-o.patch 0014-Make-
--             hash-buckets-when-all-tuples-of-a-batch-are-the.patch 0015-Make-the-buckets-of-a-Parallel-Hash-when-
--             its-tuples-.patch 0016-Have-the-remote-server-take-ANALYZE-s-sample-of-a-fo.patch 0017-Use-shared-
--             Bloom-filters-in-Parallel-Hash-left-full-.patch 0018-Start-a-Parallel-Hash-Join-s-Bloom-filter-when-
--             there.patch 0019-postgres_fdw-Sample-each-row-with-the-same-probabili.patch
--   arm       upstream: build 0d6089262ef9, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected, as master did:
--     rows of f1_near in the sample
--
--   actual, as patched did:
--     of f1_far only (by chance: 0)
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/fixed/a71224945768.sql --arm master --arm patched --arm upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "foreign_analyze", "case_id": "724/foreign_analyze/12", "oracle": "statistics", "fingerprint": "a71224945768", "arms": ["master", "patched"]}

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
CREATE TABLE r1_base (i1 int2);

-- scene 3: command
CREATE VIEW r1 AS SELECT * FROM r1_base;

-- scene 4: command
INSERT INTO r1_base DEFAULT VALUES;

-- scene 5: command
ANALYZE r1_base;

-- scene 6: command
GRANT ALL PRIVILEGES ON TABLE r1 TO duel_guest;

-- scene 7: command
CREATE TABLE f1 (i1 int2);

-- scene 8: command
CREATE TABLE f1_near () INHERITS (f1);

-- scene 9: command
CREATE FOREIGN TABLE f1_far () INHERITS (f1)  SERVER duel_loop OPTIONS (schema_name 'duel', table_name 'r1');

-- scene 10: command
INSERT INTO f1_near DEFAULT VALUES;

-- step 11: command
UPDATE pg_class SET reltuples = 1e9;

-- step 12: command
ANALYZE f1;

-- step 13: query
SELECT 1;

-- evidence 14: query
SELECT * FROM pg_stats WHERE tablename = 'f1';

-- evidence 15: query
SELECT relname, reltuples FROM pg_class WHERE relname = 'f1';

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
