SELECT count(*), sum(length(w)) FROM few
SELECT count(*), sum(length(w)) FROM nothing
SELECT count(*), sum(length(w)) FROM tens
SELECT count(*), sum(length(w)) FROM many_keys
SELECT count(*), sum(length(w)) FROM hundreds
SELECT count(*), sum(length(w)) FROM wide
SELECT count(*), sum(length(w)) FROM large
SELECT count(*), sum(length(w)) FROM parts
SELECT count(*), sum(length(w)) FROM mates
SELECT count(*), sum(length(w)) FROM pieces
SELECT count(*), sum(length(w)) FROM misjudged
SET enable_seqscan = off
SELECT count(u), max(k) FROM hundreds WHERE k > 0
SELECT count(s), max(k) FROM large WHERE s > 0
SELECT count(u), max(k) FROM parts WHERE k > 0
SELECT count(u), max(k) FROM mates WHERE u > 0
RESET enable_seqscan
EXPLAIN SELECT DISTINCT x.t, x.k, max(x.u), min(x.w), count(DISTINCT x.t), count(DISTINCT x.k), sum(x.s) FROM few AS x NATURAL JOIN tens NATURAL JOIN many_keys NATURAL JOIN hundreds GROUP BY x.t, x.k
EXPLAIN SELECT DISTINCT x.t, x.k, max(x.u), min(x.w), count(x.k) FROM wide AS x NATURAL JOIN large NATURAL JOIN misjudged NATURAL JOIN nothing GROUP BY ROLLUP (x.t, x.k)
EXPLAIN SELECT x.k, x.t FROM parts AS x NATURAL JOIN mates UNION SELECT k, t FROM pieces
EXPLAIN SELECT k, t FROM parts EXCEPT SELECT k, t FROM pieces
EXPLAIN SELECT x.k FROM parts AS x FULL JOIN mates AS y ON x.k + 1 = y.u AND x.s < y.s AND x.t <> y.t AND x.u >= y.k AND x.k <= y.k AND x.t >= y.t WHERE x.k IN (1, 2, 3) OR x.t IS DISTINCT FROM y.t
EXPLAIN SELECT rank() OVER (ORDER BY g), dense_rank() OVER (ORDER BY g), sum(g) OVER (PARTITION BY g ORDER BY g), count(*) OVER () FROM generate_series(1, (SELECT 5)) AS g WHERE nullif(g % 3, 1) NOT IN (SELECT count(s)::int FROM tens)
SELECT 'v' || g % 3, repeat('w', g), nullif(g, 1), sum(g) FROM generate_series(1, (SELECT 5)) AS g GROUP BY g
