--   patched crashes: assertion !_bt_tuple_before_array_skeys(scan, dir, tuple, tupdesc, tupnatts, false, 0, NULL) in src/backend/access/nbtree/nbtutils.c (as all arms do)
--
--   finding   30bd832d13bb, by the oracle crash (assertion !_bt_tuple_before_array_skeys(scan, dir, tuple, tupdesc, tupnatts, false, 0, NULL) in src/backend/access/nbtree/nbtutils.c)
--   case      1/pruned_partitions/70; it shows at step 12 below
--   modes     plain
--   shows     shows in 3 of 3 runs
--   blame     upstream, patched shows it without any patch
--   arm       patched: build f4ca6a2d2f9c, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4, series 0001-Fix-the-number-of-hash-buckets-when-the-hash-
--             table-i.patch 0002-Revert-postgres_fdw-s-remote-sampling-for-ANALYZE.patch 0001-Deduplicate-entries-
--             of-ResourceOwner-s-hash-table.patch 0002-Create-COPY-s-multi-insert-slots-in-the-per-query-co.patch
--             0003-Use-Bloom-filters-in-hash-joins-with-more-than-one-b.patch 0004-Don-t-let-sets-of-clause-
--             serials-grow-with-the-numbe.patch 0005-Find-equivalence-members-of-child-relations-without-.patch
--             0006-Make-hash-buckets-when-all-tuples-of-a-batch-are-the.patch 0007-Have-the-remote-server-take-
--             ANALYZE-s-sample-of-a-fo.patch
--   arm       bugged: build c6c697f7e36d, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4, series 0001-Fix-the-number-of-hash-buckets-when-the-hash-
--             table-i.patch 0002-Revert-postgres_fdw-s-remote-sampling-for-ANALYZE.patch 0001-Deduplicate-entries-
--             of-ResourceOwner-s-hash-table.patch 0002-Create-COPY-s-multi-insert-slots-in-the-per-query-co.patch
--             0003-Use-Bloom-filters-in-hash-joins-with-more-than-one-b.patch 0004-Don-t-let-sets-of-clause-
--             serials-grow-with-the-numbe.patch 0005-Find-equivalence-members-of-child-relations-without-.patch
--             0006-Make-hash-buckets-when-all-tuples-of-a-batch-are-the.patch 0007-Have-the-remote-server-take-
--             ANALYZE-s-sample-of-a-fo.patch first_subpartition_not_present.patch
--
--   expected:
--     the server stays up
--
--   actual:
--     TRAP: failed Assert("!_bt_tuple_before_array_skeys(scan, dir, tuple, tupdesc, tupnatts, false, 0, NULL)"), File: "../source/src/backend/access/nbtree/nbtutils.c...
--     postgres: postgres duel_reduction [local] SELECT(ExceptionalCondition+0x5d)[0x555555b1d59d]
--     _bt_advance_array_keys at nbtutils.c:1814 (discriminator 1)
--     postgres: postgres duel_reduction [local] SELECT(_bt_checkkeys+0x365)[0x5555557539b5]
--     _bt_readpage at nbtsearch.c:1731 (discriminator 2)
--     postgres: postgres duel_reduction [local] SELECT(_bt_first+0xd14)[0x55555574b864]
--     postgres: postgres duel_reduction [local] SELECT(btgettuple+0xaa)[0x555555745e1a]
--     postgres: postgres duel_reduction [local] SELECT(index_getnext_tid+0x4d)[0x55555573905d]
--     postgres: postgres duel_reduction [local] SELECT(index_getnext_slot+0x6b)[0x55555573926b]
--     IndexNext at nodeIndexscan.c:130
--     postgres: postgres duel_reduction [local] SELECT(ExecScan+0xe7)[0x55555586a6b7]
--     postgres: postgres duel_reduction [local] SELECT(standard_ExecutorRun+0x19b)[0x55555586088b]
--     ... 15 more lines
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/30bd832d13bb.sql
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "pruned_partitions", "case_id": "1/pruned_partitions/70", "oracle": "crash", "fingerprint": "30bd832d13bb", "arms": ["patched", "patched"]}

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
CREATE TYPE shade AS ENUM ('s00', 's01', 's02', 's03', 's04', 's05', 's06', 's07', 's08', 's09', 's10', 's11', 's12', 's13', 's14', 's15');

-- scene 1: command
CREATE DOMAIN whole AS int4;

-- scene 2: command
CREATE FUNCTION steady(anyelement) RETURNS anyelement LANGUAGE plpgsql STABLE PARALLEL SAFE AS 'BEGIN RETURN $1; END';

-- scene 3: command
CREATE TABLE r (id int4, k1 int4, k2 shade);

-- scene 4: command
INSERT INTO r SELECT 1, NULL, CAST('s' || lpad(CAST(g % 16 AS text), 2, '0') AS shade) FROM generate_series(1, 29) AS g;

-- scene 5: command
CREATE TABLE p (k1 int4, k2 shade, k3 whole);

-- scene 6: command
CREATE TABLE p_4 PARTITION OF p  DEFAULT;

-- scene 7: command
CREATE TABLE p_4_3 (k1 int4[], id int4, k3 whole, k2 shade);

-- scene 8: command
ALTER TABLE p_4_3 DROP COLUMN gone;

-- scene 9: command
ALTER TABLE p_4 ATTACH PARTITION p_4_3 DEFAULT;

-- scene 10: command
INSERT INTO p (k2) SELECT k2 FROM r;

-- scene 11: command
CREATE INDEX ON p (k2, k3);

-- step 12: query
SELECT 1 FROM p AS a WHERE (a.k2, a.k3, a.k1) <= (steady(CAST('s04' AS shade)), 1, NULL) AND a.k2 IN ('s00', 's12');

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
