--   step 21: Temp Written Blocks: 44, at most 34 + 8, as the last block of each file is counted whole
--
--   finding   6b753b2a15f4, by the oracle memory (Temp Written Blocks under plan Aggregate, Append, Hash Join, Left Hash Join, Seq Scan)
--   case      1/partitioned_joins/75; it shows at step 21 below
--   modes     hash_only, small_memory, partitionwise, explained
--   arm       master: build 24117af7a58b, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4, series 0001-Fix-the-number-of-hash-buckets-when-the-hash-
--             table-i.patch 0002-Revert-postgres_fdw-s-remote-sampling-for-ANALYZE.patch
--   arm       upstream: build 540d0a6a642d, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--
--   expected, as master did:
--     at most 34 + 8, as the last block of each file is counted whole
--
--   actual, as upstream did:
--     44
--     plan: Aggregate(Subquery Scan(Aggregate(Left Hash Join(Append(Hash Join(Seq Scan, Hash(Seq Scan))), Hash(Subquery Scan(Limit(Sort(Append(Seq Scan)))))))))
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/fixed/6b753b2a15f4.sql --arm master --arm upstream
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "partitioned_joins", "case_id": "1/partitioned_joins/75", "oracle": "memory", "fingerprint": "6b753b2a15f4", "arms": ["master", "upstream"]}

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

-- mode {"name": "hash_only"}
SET enable_mergejoin = 'off';
SET enable_nestloop = 'off';

-- mode {"name": "small_memory"}
SET work_mem = '64kB';
SET temp_buffers = '800kB';

-- mode {"name": "partitionwise"}
SET enable_partitionwise_join = 'on';
SET enable_partitionwise_aggregate = 'on';

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
INSERT INTO r1 (i1, n1, i3, i2, w1) SELECT (g / 2)::int2 AS i1, (g * g % 211) * 0.5 AS n1, (CASE WHEN g % 29 <> 28 THEN CASE WHEN g % 20 = 0 THEN g % 11 ELSE 10 END END)::int2 AS i3, (CASE WHEN g % 2 <> 1 THEN g % 101 END)::int8 AS i2, repeat(md5(g::text), 40 - g % 3) AS w1 FROM generate_series(1, 126) AS g;

-- scene 6: command
ANALYZE r1;

-- scene 7: command
INSERT INTO r1 (i1, n1, i3, i2, w1) SELECT (g / 2)::int2 AS i1, (g * g % 211) * 0.5 AS n1, (CASE WHEN g % 29 <> 28 THEN CASE WHEN g % 20 = 0 THEN g % 11 ELSE 10 END END)::int2 AS i3, (CASE WHEN g % 2 <> 1 THEN g % 101 END)::int8 AS i2, repeat(md5(g::text), 40 - g % 3) AS w1 FROM generate_series(127, 253) AS g;

-- scene 8: command
CREATE TABLE r2 (n1 numeric(10,1) NOT NULL, i2 int8 NOT NULL, w1 text COLLATE "C", t2 text COLLATE "C" NOT NULL, i1 int2 NOT NULL, PRIMARY KEY (n1, i1)) PARTITION BY HASH (n1);

-- scene 9: command
CREATE TABLE r2_1 PARTITION OF r2 FOR VALUES WITH (MODULUS 2, REMAINDER 0);

-- scene 10: command
CREATE TABLE r2_2 PARTITION OF r2 FOR VALUES WITH (MODULUS 2, REMAINDER 1);

-- scene 11: command
INSERT INTO r2 (n1, i2, w1, t2, i1) SELECT (g * 7 % 211) * 0.5 AS n1, (g / 1)::int8 AS i2, repeat(md5(g::text), 20 - g % 3) AS w1, 'k' || lpad((g / 1)::text, 4, '0') AS t2, (g)::int2 AS i1 FROM generate_series(1, 86) AS g;

-- scene 12: command
INSERT INTO r2 (n1, i2, w1, t2, i1) SELECT * FROM (VALUES ('3.0'::numeric, 53::int8, 'k0079'::text, 'k0038'::text, 87::int2), ('100.5'::numeric, 2::int8, 'k0033'::text, 'k0023'::text, 88::int2)) AS v (n1, i2, w1, t2, i1);

-- scene 13: command
UPDATE r2 AS a1 SET i2 = i2 + 1 WHERE a1.i2 BETWEEN SYMMETRIC 78::int8 AND 22::int8;

-- scene 14: command
CREATE INDEX ON r2 (t2);

-- scene 15: command
CREATE TABLE r3 (n1 numeric(10,1) NOT NULL, b1 bool, w1 text COLLATE "C", i3 int2, i2 int8, i1 int2) PARTITION BY HASH (n1);

-- scene 16: command
CREATE TABLE r3_1 PARTITION OF r3 FOR VALUES WITH (MODULUS 2, REMAINDER 0);

-- scene 17: command
CREATE TABLE r3_2 PARTITION OF r3 FOR VALUES WITH (MODULUS 2, REMAINDER 1);

-- scene 18: command
INSERT INTO r3 (n1, b1, w1, i3, i2, i1) SELECT (g % 211) * 0.5 AS n1, ((NULL::int4) % 2 = 0) AS b1, repeat(md5(g::text), 20 - g % 3) AS w1, (CASE WHEN g % 4 <> 3 THEN g / 19 END)::int2 AS i3, (CASE WHEN g % 4 <> 3 THEN g / 2 END)::int8 AS i2, (CASE WHEN g % 2 <> 1 THEN g END)::int2 AS i1 FROM generate_series(1, 200) AS g;

-- scene 19: command
CREATE INDEX ON r3 (i3, n1);

-- scene 20: command
ANALYZE r3;

-- step 21: query {"tags": ["left", "total"]}
SELECT count(*), sum(hashtextextended(q::text, 0)) FROM (SELECT sum(a2.n1), max((CASE WHEN a3.b1 THEN '2024-01-21'::date ELSE '2024-01-09'::date END + (a1.i2 % 30)::int4)), round(avg(a2.n1), 4), count(a3), sum(length(a2.w1)), sum(length(a1.w1)) FROM r1 AS a1 LEFT JOIN r1 AS a2 ON a1.n1 = a2.n1 LEFT JOIN (SELECT b1.n1 AS n1, b1.b1 AS b1, b1.i3 AS i3, b1.i2 AS i2 FROM r3 AS b1 ORDER BY 1, 2, 3, 4 LIMIT 29) AS a3 ON a1.i3 = a3.i3 AND a1.n1 = a3.n1 AND a2.i2 = a3.i2 WHERE a2.w1 >= a1.w1) AS q;

-- evidence 22: query
EXPLAIN (ANALYZE, BUFFERS, SETTINGS, TIMING OFF) SELECT count(*), sum(hashtextextended(q::text, 0)) FROM (SELECT sum(a2.n1), max((CASE WHEN a3.b1 THEN '2024-01-21'::date ELSE '2024-01-09'::date END + (a1.i2 % 30)::int4)), round(avg(a2.n1), 4), count(a3), sum(length(a2.w1)), sum(length(a1.w1)) FROM r1 AS a1 LEFT JOIN r1 AS a2 ON a1.n1 = a2.n1 LEFT JOIN (SELECT b1.n1 AS n1, b1.b1 AS b1, b1.i3 AS i3, b1.i2 AS i2 FROM r3 AS b1 ORDER BY 1, 2, 3, 4 LIMIT 29) AS a3 ON a1.i3 = a3.i3 AND a1.n1 = a3.n1 AND a2.i2 = a3.i2 WHERE a2.w1 >= a1.w1) AS q;

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
