--   master crashes: assertion bms_num_members(child_relids2) == bms_num_members(rel2->relids) in src/backend/optimizer/path/joinrels.c (as all arms do)
--
--   finding   e85c9ee762ee, by the oracle crash (assertion bms_num_members(child_relids2) == bms_num_members(rel2->relids) in src/backend/optimizer/path/joinrels.c)
--   case      libfuzzer/merged_bounds/c3a4327539dd974e6751916399ed04305b609973; it shows at step 15 below
--   modes     partitionwise (partly)
--   shows     shows in 3 of 3 runs
--   blame     upstream, master shows it without any patch
--   arm       master: build ebada3885e51, flavor guided, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4, series 0001-Fix-the-number-of-hash-buckets-when-the-hash-
--             table-i.patch 0002-Revert-postgres_fdw-s-remote-sampling-for-ANALYZE.patch
--   arm       patched: build 7070da34f6b2, flavor guided, base pg17 17.11
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
--             Bloom-filters-in-Parallel-Hash-left-full-.patch
--
--   expected:
--     the server stays up
--
--   actual:
--     TRAP: failed Assert("bms_num_members(child_relids2) == bms_num_members(rel2->relids)"), File: "../source/src/backend/optimizer/path/joinrels.c", Line: 1948, PID...
--     postgres: postgres duel_reduction [local] SELECT(ExceptionalCondition+0x79)[0x555555cdda79]
--     compute_partition_bounds at joinrels.c:1948
--     populate_joinrel_with_paths at joinrels.c:1523
--     postgres: postgres duel_reduction [local] SELECT(make_join_rel+0x1ac)[0x555555a318bc]
--     postgres: postgres duel_reduction [local] SELECT(join_search_one_level+0x426)[0x555555a30f76]
--     postgres: postgres duel_reduction [local] SELECT(standard_join_search+0x6a)[0x555555a1258a]
--     postgres: postgres duel_reduction [local] SELECT(make_one_rel+0x307)[0x555555a10217]
--     postgres: postgres duel_reduction [local] SELECT(query_planner+0x1a6)[0x555555a4d886]
--     grouping_planner at planner.c:1553
--     postgres: postgres duel_reduction [local] SELECT(subquery_planner+0x16c3)[0x555555a4fa63]
--     postgres: postgres duel_reduction [local] SELECT(standard_planner+0x168)[0x555555a4db58]
--     ... 40 more lines
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/upstream/e85c9ee762ee.sql --arm upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "merged_bounds", "case_id": "libfuzzer/merged_bounds/c3a4327539dd974e6751916399ed04305b609973", "oracle": "crash", "fingerprint": "e85c9ee762ee", "arms": ["master", "master"]}

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
CREATE TABLE r1 (k1 text COLLATE "C", k2 text COLLATE "C", k3 text COLLATE "C", i1 int4, i2 int4, t1 text COLLATE "C") PARTITION BY RANGE ((lower(k1)));

-- scene 1: command
CREATE TABLE r1_4 (i2 int4, k2 text COLLATE "C", i1 int4, t1 text COLLATE "C", gone text, k1 text COLLATE "C", k3 text COLLATE "C") PARTITION BY LIST (k2);

-- scene 2: command
ALTER TABLE r1_4 DROP COLUMN gone;

-- scene 3: command
ALTER TABLE r1 ATTACH PARTITION r1_4 FOR VALUES FROM ('k0032'::text) TO ('k0040'::text);

-- scene 4: command
CREATE TABLE r1_4_1 PARTITION OF r1_4 FOR VALUES IN ('k0003'::text, 'k0001'::text, 'k0000'::text, NULL, 'k0005'::text);

-- scene 5: command
CREATE TABLE r1_5 PARTITION OF r1 DEFAULT;

-- scene 6: command
CREATE TABLE r2 (k1 text COLLATE "C", k2 text COLLATE "C", k3 text COLLATE "C", i1 int4, i2 int4, t1 text COLLATE "C") PARTITION BY RANGE ((lower(k1)));

-- scene 7: command
CREATE TABLE r2_1 PARTITION OF r2 FOR VALUES FROM ('k0023'::text) TO ('k0032'::text);

-- scene 8: command
CREATE TABLE r2_2 PARTITION OF r2 FOR VALUES FROM ('k0032'::text) TO ('k0040'::text) PARTITION BY LIST (k2);

-- scene 9: command
CREATE TABLE r2_2_1 PARTITION OF r2_2 FOR VALUES IN ('k0003'::text, 'k0000'::text, 'k0005'::text, 'k0001'::text);

-- scene 10: command
CREATE TABLE r3 (k1 text COLLATE "C", k2 text COLLATE "C", k3 text COLLATE "C", i1 int4, i2 int4, t1 text COLLATE "C") PARTITION BY RANGE ((lower(k1)));

-- scene 11: command
CREATE TABLE r4 (k1 text COLLATE "C", k2 text COLLATE "C", k3 text COLLATE "C", i1 int4, i2 int4, t1 text COLLATE "C") PARTITION BY RANGE ((lower(k1)));

-- scene 12: command
CREATE TABLE r4_1 PARTITION OF r4 FOR VALUES FROM ('k0006'::text) TO ('k0014'::text);

-- scene 13: command
CREATE TABLE r4_3 PARTITION OF r4 FOR VALUES FROM ('k0035'::text) TO ('k0040'::text) PARTITION BY LIST (k2);

-- scene 14: command
CREATE TABLE r4_3_2 PARTITION OF r4_3 DEFAULT;

-- step 15: query
SELECT 1 FROM r4 AS a1 LEFT JOIN (SELECT b1.k1 AS k1, b1.k2 AS k2, b1.k3 AS k3, b1.i1 AS i1, b1.i2 AS i2, b1.t1 AS t1 FROM r1 AS b1 WHERE EXISTS (SELECT FROM r2 AS b2 WHERE lower(b1.k1) = lower(b2.k1) AND b1.k2 = b2.k2 AND lower(b1.k3) = lower(b2.k3))) AS a2 ON lower(a1.k1) = lower(a2.k1) AND a1.k2 = a2.k2 AND lower(a1.k3) = lower(a2.k3) LEFT JOIN r1 AS a3 ON lower(a1.k1) = lower(a3.k1) WHERE a3.t1 <> CAST('k0003' AS text) AND lower(a3.k1) IS NULL AND EXISTS (SELECT FROM r3 AS b1 WHERE lower(a2.k1) = lower(b1.k1) AND a2.k2 = b1.k2 AND lower(a2.k3) = lower(b1.k3) AND b1.i2 IN (3, 5, 4, 2, 2, 1));

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
