--   step 16: Temp Written Blocks: 205, at most 142 + 8, as the last block of each file is counted whole
--
--   finding   739dca839116, by the oracle memory (Temp Written Blocks under plan Aggregate, CTE Scan, Right Hash Join, Seq Scan)
--   case      302/outer_joins/328; it shows at step 16 below
--   modes     plain
--   arm       master: build 34063c9c36db, flavor sanitize, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--   arm       patched: build a9725128dc31, flavor sanitize, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4, series 0001-Deduplicate-entries-of-ResourceOwner-s-hash-
--             table.patch 0002-Create-COPY-s-multi-insert-slots-in-the-per-query-co.patch 0003-Use-Bloom-filters-
--             in-hash-joins-with-more-than-one-b.patch
--
--   expected, as master did:
--     at most 142 + 8, as the last block of each file is counted whole
--
--   actual, as patched did:
--     205
--     plan: Aggregate(Subquery Scan(Right Hash Join(Right Hash Join(Seq Scan, Hash(Subquery Scan(Seq Scan))), CTE Scan, Hash(Seq Scan))))
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/fixed/739dca839116.sql
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "outer_joins", "case_id": "302/outer_joins/328", "oracle": "memory", "fingerprint": "739dca839116", "arms": ["master", "patched"]}

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
CREATE TABLE r1 (k1 text COLLATE "und-x-icu" NOT NULL, k2 int4 NOT NULL, i1 int4 NOT NULL, i2 int4 NOT NULL, i3 int4 NOT NULL, w1 text COLLATE "und-x-icu");

-- scene 1: command
INSERT INTO r1 (k1, k2, i1, i2, i3, w1) SELECT 'k' || lpad((g * 13 % 503)::text, 4, '0') AS k1, ((g * 13 % 503) % 10 + 0)::int4 AS k2, (g)::int4 AS i1, (g % 20)::int4 AS i2, (g % 20 / 4)::int4 AS i3, repeat(md5(g::text), 6 + g % 3) AS w1 FROM generate_series(1, 1500) AS g;

-- scene 2: command
CREATE INDEX ON r1 (i1 DESC NULLS LAST) INCLUDE (i2);

-- scene 3: command
ANALYZE r1;

-- scene 4: command
CREATE TABLE r2 (k1 text COLLATE "und-x-icu", k2 int4 NOT NULL, i1 int4 NOT NULL, i2 int4 NOT NULL, i3 int4 NOT NULL, w1 text COLLATE "und-x-icu", PRIMARY KEY (i1));

-- scene 5: command
INSERT INTO r2 (k1, k2, i1, i2, i3, w1) SELECT 'k' || lpad((CASE WHEN g % 100 >= 1 THEN CASE WHEN g % 10 = 0 THEN g * 1 % 9973 ELSE 7 END END)::text, 4, '0') AS k1, ((CASE WHEN g % 10 = 0 THEN g * 1 % 9973 ELSE 7 END) % 10 + 0)::int4 AS k2, (g)::int4 AS i1, (g % 20)::int4 AS i2, (g % 20 / 4)::int4 AS i3, repeat(md5(g::text), 5 + g % 3) AS w1 FROM generate_series(1, 1800) AS g;

-- scene 6: command
UPDATE r2 AS a1 SET i2 = i2 + 1 WHERE a1.i2 <> 4;

-- scene 7: command
CREATE STATISTICS ON i1, i2 FROM r2;

-- scene 8: command
CREATE TABLE r3 (k1 text COLLATE "und-x-icu" NOT NULL, k2 int4 NOT NULL, i1 int4 NOT NULL, i2 int4 NOT NULL, i3 int4 NOT NULL, w1 text COLLATE "und-x-icu");

-- scene 9: command
CREATE INDEX ON r3 USING brin (k1);

-- scene 10: command
INSERT INTO r3 (k1, k2, i1, i2, i3, w1) SELECT 'k' || lpad((g / 2 * 1 % 9973)::text, 4, '0') AS k1, ((g / 2 * 1 % 9973) % 10 + 0)::int4 AS k2, (g)::int4 AS i1, (g % 20)::int4 AS i2, (g % 20 / 4)::int4 AS i3, repeat(md5(g::text), 68 + g % 3) AS w1 FROM generate_series(1, 68) AS g;

-- scene 11: command
SET work_mem = '64kB';

-- scene 12: command
SET hash_mem_multiplier = 1;

-- step 13: query
SELECT count(*), sum(hashtextextended(q::text, 0)) FROM (SELECT a1.k1, a1.i1, a2.k1, a2.i1, right(a1.w2, 8), right(a2.w2, 8) FROM (SELECT a1.k1 AS k1, a1.k2 AS k2, a1.i1 AS i1, a1.i2 AS i2, a1.i3 AS i3, repeat(md5(a1.i1::text), 16) AS w2 FROM r3 AS a1 OFFSET 0) AS a1 FULL JOIN (SELECT a2.k1 AS k1, a2.k2 AS k2, a2.i1 AS i1, a2.i2 AS i2, a2.i3 AS i3, repeat(md5(a2.i1::text), 2) AS w2 FROM r2 AS a2 OFFSET 0) AS a2 ON a1.k1 = a2.k1) AS q;

-- step 14: query
SELECT count(*), sum(a2.i1), sum(a2.i2), sum(a1.i1), sum(a1.i2), sum(length(a2.w1)), sum(length(a1.w1)) FROM r1 AS a2 FULL JOIN r3 AS a1 ON a2.k1 = a1.k1;

-- step 15: query
SELECT count(*), sum(hashtextextended(q::text, 0)) FROM (WITH RECURSIVE c (k1, i1, i2) AS (SELECT a1.k1, a1.i1, 0 AS i2 FROM r1 AS a1 WHERE a1.i1 <= 59 UNION ALL SELECT c.k1, c.i1, c.i2 + 1 FROM c WHERE NOT EXISTS (SELECT FROM r3 AS a2 WHERE c.k1 = a2.k1) AND c.i2 < 3) SELECT k1, i1, i2 FROM c) AS q;

-- step 16: query
SELECT count(*), sum(hashtextextended(q::text, 0)) FROM (WITH c AS MATERIALIZED (SELECT b1.k1 AS k1, b1.i1 AS i1, b1.i2 AS i2, b1.i3 AS i3, b1.w1 AS w1 FROM r2 AS b1 RIGHT JOIN (SELECT b2.k1 AS k1, b2.k2 AS k2, b2.i1 AS i1, b2.i2 AS i2, b2.i3 AS i3, repeat(md5(b2.i1::text), 2) AS w2 FROM r1 AS b2 OFFSET 0) AS b2 ON b1.k1 = b2.k1 AND b1.i3 <> b2.i2) SELECT a1.i1, 'true'::bool FROM c AS a2 RIGHT JOIN r1 AS a1 ON a2.k1 = a1.k1 AND a2.i3 <> a1.i2) AS q;

-- evidence 17: query
EXPLAIN (ANALYZE, BUFFERS, SETTINGS, TIMING OFF) SELECT count(*), sum(hashtextextended(q::text, 0)) FROM (WITH c AS MATERIALIZED (SELECT b1.k1 AS k1, b1.i1 AS i1, b1.i2 AS i2, b1.i3 AS i3, b1.w1 AS w1 FROM r2 AS b1 RIGHT JOIN (SELECT b2.k1 AS k1, b2.k2 AS k2, b2.i1 AS i1, b2.i2 AS i2, b2.i3 AS i3, repeat(md5(b2.i1::text), 2) AS w2 FROM r1 AS b2 OFFSET 0) AS b2 ON b1.k1 = b2.k1 AND b1.i3 <> b2.i2) SELECT a1.i1, 'true'::bool FROM c AS a2 RIGHT JOIN r1 AS a1 ON a2.k1 = a1.k1 AND a2.i3 <> a1.i2) AS q;

-- end

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
