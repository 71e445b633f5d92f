--   step 12: Temp Written Blocks: 15, at most 0 + 4, as the last block of each file is counted whole
--
--   finding   9e8cb782a3b0, by the oracle memory (Temp Written Blocks under plan Aggregate, Append, Hash Join, Seq Scan)
--   case      1/partitioned_joins/75; it shows at step 12 below
--   modes     small_memory (partly), explained
--   shows     shows in 3 of 3 runs
--   blame     one of the patches 1 to 2 of master, pgduel blame finds which
--   suspect   upstream, as master and patched agree
--   arm       master: build 24117af7a58b, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4, series 0001-Fix-the-number-of-hash-buckets-when-the-hash-
--             table-i.patch 0002-Revert-postgres_fdw-s-remote-sampling-for-ANALYZE.patch
--   arm       patched: build 7c0333240368, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4, series 0001-Fix-the-number-of-hash-buckets-when-the-hash-
--             table-i.patch 0002-Revert-postgres_fdw-s-remote-sampling-for-ANALYZE.patch 0001-Deduplicate-entries-
--             of-ResourceOwner-s-hash-table.patch 0002-Create-COPY-s-multi-insert-slots-in-the-per-query-co.patch
--             0003-Use-Bloom-filters-in-hash-joins-with-more-than-one-b.patch 0004-Don-t-let-sets-of-clause-
--             serials-grow-with-the-numbe.patch 0005-Find-equivalence-members-of-child-relations-without-.patch
--             0006-Make-hash-buckets-when-all-tuples-of-a-batch-are-the.patch 0007-Have-the-remote-server-take-
--             ANALYZE-s-sample-of-a-fo.patch
--   arm       upstream: build 540d0a6a642d, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected, as master did:
--     at most 0 + 4, as the last block of each file is counted whole
--
--   actual, as upstream did:
--     15
--     plan: Aggregate(Hash Join(Append(Seq Scan), Hash(Hash Join(Append(Seq Scan), Hash(Append(Seq Scan))))))
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/fixed/9e8cb782a3b0.sql --arm master --arm upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "partitioned_joins", "case_id": "1/partitioned_joins/75", "oracle": "memory", "fingerprint": "9e8cb782a3b0", "arms": ["master", "upstream"]}

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

-- mode {"name": "small_memory (partly)"}
SET work_mem = '64kB';

-- mode {"name": "explained"}

-- scene 0: command
CREATE TABLE r1 (i1 int2 NOT NULL, n1 numeric(10,1) NOT NULL, i3 int2, i2 int8, w1 text COLLATE "C") PARTITION BY HASH (n1);

-- scene 1: command
CREATE TABLE r1_1 (w1 text COLLATE "C", i2 int8, gone text, i3 int2, n1 numeric(10,1) NOT NULL, i1 int2 NOT NULL);

-- scene 2: command
ALTER TABLE r1_1 DROP COLUMN gone;

-- scene 3: command
ALTER TABLE r1 ATTACH PARTITION r1_1 FOR VALUES WITH (MODULUS 2, REMAINDER 0);

-- scene 4: command
CREATE TABLE r1_2 PARTITION OF r1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);

-- scene 5: command
INSERT INTO r1 (i1, n1, i3, i2, w1) SELECT CAST(g / 2 AS int2) AS i1, g * g % 211 * 0.5 AS n1, CAST(CASE WHEN g % 29 <> 28 THEN CASE WHEN g % 20 = 0 THEN g % 11 ELSE 10 END END AS int2) AS i3, CAST(CASE WHEN g % 2 <> 1 THEN g % 101 END AS int8) AS i2, repeat(md5(CAST(g AS text)), 40 - g % 3) AS w1 FROM generate_series(1, 108) AS g;

-- scene 6: command
ANALYZE r1;

-- scene 7: command
CREATE TABLE r3 (n1 numeric(10,1) NOT NULL, b1 bool, w1 text COLLATE "C", i3 int2, i2 int8, i1 int2) PARTITION BY HASH (n1);

-- scene 8: command
CREATE TABLE r3_1 PARTITION OF r3 FOR VALUES WITH (MODULUS 2, REMAINDER 0);

-- scene 9: command
CREATE TABLE r3_2 PARTITION OF r3 FOR VALUES WITH (MODULUS 2, REMAINDER 1);

-- scene 10: command
INSERT INTO r3 (n1, b1, w1, i3, i2, i1) SELECT g % 211 * 0.5 AS n1, CAST(NULL AS int4) % 2 = 0 AS b1, repeat(md5(CAST(g AS text)), 20 - g % 3) AS w1, CAST(CASE WHEN g % 4 <> 3 THEN g / 19 END AS int2) AS i3, CAST(CASE WHEN g % 4 <> 3 THEN g / 2 END AS int8) AS i2, CAST(CASE WHEN g % 2 <> 1 THEN g END AS int2) AS i1 FROM generate_series(1, 188) AS g;

-- scene 11: command
ANALYZE r3;

-- step 12: query
SELECT count(a3), sum(length(a3.w1)), sum(length(a1.w1)) FROM r1 AS a2 LEFT JOIN r1 AS a1 ON a1.i3 = a2.i3 AND a1.n1 = a2.n1 INNER JOIN r3 AS a3 ON a1.n1 = a3.n1;

-- evidence 13: query
EXPLAIN (ANALYZE, BUFFERS, SETTINGS, TIMING OFF) SELECT count(a3), sum(length(a3.w1)), sum(length(a1.w1)) FROM r1 AS a2 LEFT JOIN r1 AS a1 ON a1.i3 = a2.i3 AND a1.n1 = a2.n1 INNER JOIN r3 AS a3 ON a1.n1 = a3.n1;

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
