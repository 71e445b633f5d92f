--   step 15: Temp Written Blocks: 2589, at most 872 + 20, as the last block of each file is counted whole
--
--   finding   68187b690a27, by the oracle memory (Temp Written Blocks under plan Hash Join, Semi Hash Join, Seq Scan)
--   case      301/outer_joins/1136; it shows at step 15 below
--   modes     filter_forced
--   arm       master: build 540d0a6a642d, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4
--   arm       patched: build 28e4f9f7a56d, flavor assert, base pg17 17.11
--             dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979, tree
--             5f2183b96c11063151c3687c8d18405db01f34d4, series 0001-Deduplicate-entries-of-ResourceOwner-s-hash-
--             table.patch 0002-Create-COPY-s-multi-insert-slots-in-the-per-query-co.patch 0003-Use-Bloom-filters-
--             in-hash-joins-with-more-than-one-b.patch
--
--   expected, as master did:
--     at most 872 + 20, as the last block of each file is counted whole
--
--   actual, as patched did:
--     2589
--     plan: Limit(Sort(Semi Hash Join(Hash Join(Seq Scan, Hash(Subquery Scan(Seq Scan))), Hash(Subquery Scan(Seq Scan)))))
--
--   See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print
--   Judge it: ./pgduel replay corpus/fixed/68187b690a27.sql
--   Written by pgduel 0.1.0.

-- pgduel: {"generator": "outer_joins", "case_id": "301/outer_joins/1136", "oracle": "memory", "fingerprint": "68187b690a27", "arms": ["master", "patched"]}

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

-- mode {"name": "filter_forced", "optional": true}
SET debug_force_hashjoin_bloom = 'on';

-- scene 0: command
SET max_parallel_maintenance_workers = 0;

-- scene 1: command
CREATE TABLE r1 (k1 text COLLATE "C" NOT NULL, k2 int4 NOT NULL, i1 int4 NOT NULL, i2 int4 NOT NULL, i3 int4 NOT NULL, w1 text COLLATE "C");

-- scene 2: command
INSERT INTO r1 (k1, k2, i1, i2, i3, w1) SELECT repeat('k' || lpad((g * 7 % 4999)::text, 4, '0'), 60) AS k1, ((g * 7 % 4999) % 10 + 0)::int4 AS k2, (g)::int4 AS i1, (g % 20)::int4 AS i2, (g % 20 / 4)::int4 AS i3, CASE WHEN g % 10 = 0 THEN repeat(md5(g::text), 90) ELSE repeat(md5(g::text), 1 + g % 3) END AS w1 FROM generate_series(1, 12000) AS g;

-- scene 3: command
CREATE TABLE r2 (k1 text COLLATE "C" NOT NULL, k2 int4 NOT NULL, i1 int4 NOT NULL, i2 int4 NOT NULL, i3 int4 NOT NULL, w1 text COLLATE "C");

-- scene 4: command
INSERT INTO r2 (k1, k2, i1, i2, i3, w1) SELECT repeat('k' || lpad((CASE WHEN g % 3 = 0 THEN g / 2 * 2 % 9973 ELSE 10 END)::text, 4, '0'), 60) AS k1, ((CASE WHEN g % 3 = 0 THEN g / 2 * 2 % 9973 ELSE 10 END) % 10 + 0)::int4 AS k2, (g)::int4 AS i1, (g % 20)::int4 AS i2, (g % 20 / 4)::int4 AS i3, repeat(md5(g::text), 7 + g % 3) AS w1 FROM generate_series(1, 1200) AS g;

-- scene 5: command
CREATE INDEX ON r2 (i1, i3);

-- scene 6: command
ANALYZE r2;

-- scene 7: command
CREATE TABLE r3 (k1 text COLLATE "C" NOT NULL, k2 int4 NOT NULL, i1 int4 NOT NULL, i2 int4 NOT NULL, i3 int4 NOT NULL, w1 text COLLATE "C", PRIMARY KEY (i1));

-- scene 8: command
INSERT INTO r3 (k1, k2, i1, i2, i3, w1) SELECT repeat('k' || lpad((g / 2 * 2 % 9973)::text, 4, '0'), 60) AS k1, ((g / 2 * 2 % 9973) % 10 + g % 3 / 2)::int4 AS k2, (g)::int4 AS i1, (g % 20)::int4 AS i2, (g % 20 / 4)::int4 AS i3, CASE WHEN g % 10 = 0 THEN repeat(md5(g::text), 90) ELSE repeat(md5(g::text), 43 + g % 3) END AS w1 FROM generate_series(1, 214) AS g;

-- scene 9: command
CREATE INDEX ON r3 (k1);

-- scene 10: command
SET work_mem = '1MB';

-- scene 11: command
SET hash_mem_multiplier = 1;

-- scene 12: command
SET enable_parallel_hash = off;

-- step 13: query
SELECT a1.i2, a2.i8, a2.i4, a2.i6 FROM generate_series(2, 3) AS a1 (i2) CROSS JOIN LATERAL (SELECT count(*) AS i8, sum(b1.i1) AS i4, sum(length(b1.w1)) AS i6 FROM r1 AS b1 WHERE b1.i2 < a1.i2 AND NOT EXISTS (SELECT 1 FROM (SELECT c1.k1 AS k1, c1.k2 AS k2, c1.i1 AS i1, c1.i2 AS i2, c1.i3 AS i3, repeat(md5(c1.i1::text), 256) AS w2 FROM r3 AS c1 OFFSET 0) AS c1 WHERE b1.k1 = c1.k1 AND b1.k2 = c1.k2 AND c1.i2 >= a1.i2)) AS a2;

-- step 14: query ordered
SELECT ('2024-01-13'::date::text) FROM (SELECT a3.k1 AS k1, a3.k2 AS k2, a3.i1 AS i1, a3.i2 AS i2, a3.i3 AS i3, repeat(md5(a3.i1::text), 4) AS w2 FROM r1 AS a3 OFFSET 0) AS a3 JOIN (r2 AS a1 LEFT JOIN r3 AS a2 ON a1.k1::varchar = a2.k1::varchar AND a1.i2 % 2 = 1) ON a3.k1 = a2.k1 AND (a3.i3 < a1.i2 OR a1.i2 = 1) ORDER BY 1 DESC NULLS LAST LIMIT 16 OFFSET 16;

-- step 15: query ordered
SELECT a1.k1, a1.i1, a2.k1, a2.i1, right(a1.w2, 8), right(a2.w2, 8) FROM ((SELECT a1.k1 AS k1, a1.k2 AS k2, a1.i1 AS i1, a1.i2 AS i2, a1.i3 AS i3, repeat(md5(a1.i1::text), 55) AS w2 FROM r2 AS a1 OFFSET 0) AS a1 JOIN (SELECT a2.k1 AS k1, a2.k2 AS k2, a2.i1 AS i1, a2.i2 AS i2, a2.i3 AS i3, repeat(md5(a2.i1::text), 205) AS w2 FROM r3 AS a2 OFFSET 0) AS a2 ON a1.k1 = a2.k1) WHERE EXISTS (SELECT 1 FROM (SELECT b1.k1 AS k1, b1.k2 AS k2, b1.i1 AS i1, b1.i2 AS i2, b1.i3 AS i3, repeat(md5(b1.i1::text), 5) AS w2 FROM r1 AS b1 OFFSET 0) AS b1 WHERE a1.k1 = b1.k1 AND a1.k2 = b1.k2 AND a1.i3 + b1.i3 > 1) ORDER BY 6, 5, 4 DESC, 1 DESC, 3, 2 DESC NULLS LAST LIMIT 25;

-- evidence 27: query ordered
EXPLAIN (ANALYZE, BUFFERS, SETTINGS, TIMING OFF) SELECT a1.k1, a1.i1, a2.k1, a2.i1, right(a1.w2, 8), right(a2.w2, 8) FROM ((SELECT a1.k1 AS k1, a1.k2 AS k2, a1.i1 AS i1, a1.i2 AS i2, a1.i3 AS i3, repeat(md5(a1.i1::text), 55) AS w2 FROM r2 AS a1 OFFSET 0) AS a1 JOIN (SELECT a2.k1 AS k1, a2.k2 AS k2, a2.i1 AS i1, a2.i2 AS i2, a2.i3 AS i3, repeat(md5(a2.i1::text), 205) AS w2 FROM r3 AS a2 OFFSET 0) AS a2 ON a1.k1 = a2.k1) WHERE EXISTS (SELECT 1 FROM (SELECT b1.k1 AS k1, b1.k2 AS k2, b1.i1 AS i1, b1.i2 AS i2, b1.i3 AS i3, repeat(md5(b1.i1::text), 5) AS w2 FROM r1 AS b1 OFFSET 0) AS b1 WHERE a1.k1 = b1.k1 AND a1.k2 = b1.k2 AND a1.i3 + b1.i3 > 1) ORDER BY 6, 5, 4 DESC, 1 DESC, 3, 2 DESC NULLS LAST LIMIT 25;

-- step 16: command
BEGIN;

-- step 17: command
SAVEPOINT s;

-- step 18: command
DECLARE walk SCROLL CURSOR FOR SELECT a1.k1, a1.i1, a2.k1, a2.i1, right(a1.w2, 8), right(a2.w2, 8) FROM (SELECT a1.k1 AS k1, a1.k2 AS k2, a1.i1 AS i1, a1.i2 AS i2, a1.i3 AS i3, repeat(md5(a1.i1::text), 3) AS w2 FROM r1 AS a1 OFFSET 0) AS a1 LEFT JOIN (SELECT a2.k1 AS k1, a2.k2 AS k2, a2.i1 AS i1, a2.i2 AS i2, a2.i3 AS i3, repeat(md5(a2.i1::text), 307) AS w2 FROM r3 AS a2 OFFSET 0) AS a2 ON a1.k1 = a2.k1 AND a1.k2 = a2.k2 ORDER BY 6, 5, 1, 4, 3, 2;

-- step 19: command ordered
FETCH FORWARD 7 FROM walk;

-- step 20: command ordered
FETCH BACKWARD 3 FROM walk;

-- step 21: command ordered
FETCH ABSOLUTE 9 FROM walk;

-- step 22: command ordered
FETCH BACKWARD 2 FROM walk;

-- step 23: command ordered
FETCH RELATIVE -6 FROM walk;

-- step 24: command ordered
FETCH FORWARD 4 FROM walk;

-- step 25: command
ROLLBACK TO s;

-- step 26: command
COMMIT;

-- end

ROLLBACK;

SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;
