"""Tests of the metamorphic oracles on real servers: legal differences between query variants are no findings."""

import pglast
import pytest
from pglast import ast

from fuzz.execution.executor import Executor
from fuzz.execution.judging import assignments, judge_case
from fuzz.servers.arm import Arm
from oracles.framework.metamorphic import Metamorphic
from oracles.model.case import Case, Kind, Step
from oracles.model.oracle import all_oracles

pytestmark = pytest.mark.servers

ORACLES = tuple(oracle for oracle in all_oracles() if isinstance(oracle, Metamorphic) or oracle.name == "cert")
SAMPLES = tuple(sample.name for oracle in ORACLES for sample in oracle.samples)
ROWS = """
    CREATE TABLE a (i int, k int);
    INSERT INTO a SELECT g, g % 5 FROM generate_series(1, 20) AS g;
    CREATE TABLE b (i int, k int);
    INSERT INTO b SELECT g * 7 % 20, g % 5 FROM generate_series(1, 20) AS g;
    CREATE INDEX ON b (i);
"""
RAISING = """
    CREATE TABLE a (i int, k int, t text, n numeric);
    INSERT INTO a SELECT g, g % 5, CASE WHEN g % 5 > 0 THEN g::text ELSE 'none' END, 10::numeric ^ 100
      FROM generate_series(1, 20) AS g;
    UPDATE a SET i = 2147483647 WHERE k = 0;
    CREATE INDEX ON a (i);
    CREATE INDEX ON a (k);
"""
NUMBERS = """
    CREATE TABLE a (i int, n numeric);
    INSERT INTO a SELECT g, (g * 7 % 3)::numeric(10, 0) FROM generate_series(1, 20) AS g;
    INSERT INTO a SELECT g, (g * 7 % 3)::numeric(10, 2) FROM generate_series(20, 40) AS g;
    CREATE INDEX ON a (i);
    CREATE INDEX ON a (n);
"""
SCALED = """
    CREATE TABLE a (i int, n numeric(10, 2));
    INSERT INTO a SELECT g, nullif(g % 4, 3) FROM generate_series(1, 20) AS g;
    CREATE INDEX ON a (i DESC);
"""
FLOATS = """
    CREATE TABLE a (i int, f float8);
    INSERT INTO a SELECT g, (g * 7919 % 97) / 7.0 * 10 ^ (g % 20 - 10) FROM generate_series(1, 200) AS g;
    CREATE TABLE b (i int, k int);
    INSERT INTO b SELECT g, g % 5 FROM generate_series(1, 100, 3) AS g;
    CREATE INDEX ON a (i);
"""
FOLDING = """
    CREATE COLLATION folding (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE TABLE a (i int, t text);
    INSERT INTO a SELECT g, chr(97 + g) FROM generate_series(1, 20) AS g;
    INSERT INTO a SELECT g, chr(65 + g) FROM generate_series(1, 20) AS g;
    CREATE TABLE b (i int, t text COLLATE folding);
    INSERT INTO b SELECT g, chr(65 + g) FROM generate_series(10, 30) AS g;
"""
LEGAL = {
    "order of an array": ROWS + "SELECT a.i, ARRAY(SELECT b.i FROM b WHERE b.i > 3) FROM a WHERE a.k > 1",
    "order of a JSON array": ROWS
    + "SELECT a.i, JSON_ARRAY(SELECT b.i FROM b WHERE b.i > 3)::text FROM a WHERE a.k > 1",
    "a view with LIMIT": ROWS
    + "CREATE VIEW v AS SELECT b.i, b.k FROM b WHERE b.i > 2 ORDER BY b.k LIMIT 7; SELECT v.i FROM v WHERE v.i > 3",
    "a view with nextval": ROWS
    + "CREATE SEQUENCE s; CREATE VIEW v AS SELECT b.i, nextval('s') AS n FROM b; SELECT v.n FROM v WHERE v.i > 3",
    "a view on a view of settings": "CREATE VIEW u AS SELECT name, setting FROM pg_settings;"
    "CREATE VIEW v AS SELECT u.name, u.setting FROM u WHERE u.name LIKE 'enable%';"
    "SELECT v.name, v.setting FROM v WHERE v.name > 'e'",
    "an aggregate of the outer query": ROWS + "SELECT (SELECT max(a.i)) AS m FROM a WHERE a.k > 1",
    "an aggregate of the outer query with DISTINCT": ROWS
    + "SELECT DISTINCT (SELECT max(a.i)) AS m FROM a WHERE a.k > 1",
    "an aggregate of the outer query with a join": ROWS
    + "SELECT (SELECT max(a.i)) AS m FROM a LEFT JOIN b ON a.i = b.i",
    "ORDER BY with an aggregate": ROWS + "SELECT 1 AS o FROM a LEFT JOIN b ON a.i = b.k ORDER BY count(*)",
    "one group without GROUP BY": ROWS + "SELECT 1 AS o FROM a WHERE a.k > 1 HAVING max(a.i) > 3",
    "a row as an argument, beside a column c1": "CREATE TABLE a (i int, c1 int);"
    "INSERT INTO a SELECT g, NULL FROM generate_series(1, 20) AS g; CREATE TABLE b (i int);"
    "INSERT INTO b SELECT generate_series(1, 9, 2); SELECT count(a.*) FROM a LEFT JOIN b ON a.i = b.i",
    "an output column with the name of another column": "CREATE TABLE a (a int, b int);"
    "INSERT INTO a SELECT g % 3, g FROM generate_series(1, 20) AS g; CREATE INDEX ON a (a, b DESC);"
    "SELECT a AS b, b AS c FROM a ORDER BY b LIMIT 3",
    "sums of floats": FLOATS + "SELECT sum(a.f), avg(a.f) FROM a LEFT JOIN b ON a.i = b.i",
    "sums of floats of one side": FLOATS
    + "SELECT sum(a.f) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.i = a.i) AND a.i > 2",
    "a sum of floats as text": FLOATS + "SELECT sum(a.f)::text AS t FROM a JOIN b ON a.i % 3 = b.k WHERE a.i > 3",
    "equal numbers of different scale": NUMBERS + "SELECT DISTINCT a.n FROM a WHERE a.i > 3 AND a.i <> 5",
    "the largest of equal numbers": NUMBERS + "SELECT max(a.n), min(a.n) FROM a WHERE a.i % 3 > 0",
    "the largest of equal numbers of a join": NUMBERS + "SELECT max(a.n) FROM a LEFT JOIN a AS b ON a.i = b.i + 17",
    "a view with numbers of different scale": SCALED
    + "CREATE VIEW v AS SELECT a.i, CASE WHEN a.i < 8 THEN 1.0 ELSE 1.00 END AS m FROM a;"
    "SELECT max(v.m) FROM v WHERE v.i > 2",
    "a view that picks one of equal numbers": NUMBERS
    + "CREATE VIEW v AS SELECT a.n, count(*) AS c FROM a GROUP BY a.n; CREATE VIEW w AS SELECT v.n FROM v;"
    "SELECT w.n FROM w WHERE w.n <> 5",
    "an integer in place of a number": SCALED + "SELECT DISTINCT coalesce(a.n, 0) FROM a WHERE a.i > 2",
    "integers and numbers": SCALED + "SELECT DISTINCT CASE WHEN a.i > 4 THEN a.n ELSE a.i % 3 END FROM a;"
    "SELECT a.n FROM a UNION SELECT a.i % 3 FROM a",
    "numbers and rounded numbers": SCALED + "SELECT a.n FROM a UNION SELECT round(a.n) FROM a",
    "equal means of different scale": "CREATE TABLE a (k int, i int);"
    "INSERT INTO a SELECT g, 15000 FROM generate_series(1, 40) AS g WHERE g <= 20 OR g % 2 = 1;"
    "INSERT INTO a SELECT g, 15000 FROM generate_series(1, 20, 2) AS g; CREATE INDEX ON a (k DESC);"
    "SELECT DISTINCT avg(a.i) FROM a GROUP BY a.k;"
    "SELECT max(q.s) FROM (SELECT avg(a.i) AS s FROM a GROUP BY a.k) AS q",
    "equal quotients of different scale": SCALED
    + "SELECT max(q.x / q.y) FROM (SELECT CASE WHEN a.i % 2 = 0 THEN 3 + a.n * 0 ELSE 15000 + a.n * 0 END AS x, "
    "CASE WHEN a.i % 2 = 0 THEN 2 + a.n * 0 ELSE 10000 + a.n * 0 END AS y FROM a WHERE a.i > 2) AS q",
    "equal numbers of different scale as text": NUMBERS + "SELECT a.n::text AS t, count(*) FROM a GROUP BY a.n",
    "a condition on the text of a group's number": NUMBERS
    + "SELECT count(*) FROM a GROUP BY a.n HAVING a.n::text LIKE '%.00'",
    "the text of a zero": "CREATE TABLE a (f float8); CREATE INDEX ON a (f);"
    "INSERT INTO a SELECT CASE g % 2 WHEN 0 THEN '-0' ELSE '0' END::float8 FROM generate_series(1, 20) AS g;"
    "SELECT max(a.f)::text AS t FROM a WHERE a.f = 0",
    "equal letters of different case": FOLDING
    + "SELECT DISTINCT c.t FROM (SELECT b.t FROM b UNION ALL SELECT a.t FROM a) AS c WHERE c.t > 'c'",
    "collation of a subquery": FOLDING + "SELECT a.i, a.t FROM a WHERE a.t > (SELECT min(b.t) FROM b)",
    "common type of a list": "CREATE TABLE a (v varchar, c char(5)); INSERT INTO a VALUES ('a ', 'a');"
    "SELECT a.c FROM a WHERE a.v IN (SELECT b.c FROM a AS b)",
    "a float printed with fewer digits": "SET extra_float_digits = -5; CREATE TABLE a (i int, f float8);"
    "INSERT INTO a SELECT g, g / 7.0 FROM generate_series(1, 9) AS g;"
    "SELECT a.i FROM a WHERE a.f = (SELECT max(b.f) FROM a AS b); SELECT a.i FROM a WHERE a.f IN (SELECT f FROM a)",
    "an ambiguous time zone": "SET DateStyle = 'SQL, DMY'; SET TimeZone = 'Asia/Kolkata';"
    "CREATE TABLE a (n timestamptz); INSERT INTO a VALUES ('2024-11-03 05:00:00+00');"
    "SELECT a.n FROM a WHERE a.n IN (SELECT b.n FROM a AS b)",
    "a default that is the current time": "CREATE TABLE a (i int, d timestamptz DEFAULT clock_timestamp());"
    "INSERT INTO a (i) SELECT g FROM generate_series(1, 5) AS g; SELECT a.i FROM a WHERE a.i > 2",
    "bounds of a view and of the query": "CREATE TABLE p (i int, k int);"
    "INSERT INTO p SELECT g, g % 7 FROM generate_series(1, 600) AS g; ANALYZE p;"
    "CREATE VIEW w AS SELECT i + 0 AS j, k FROM p WHERE k > 2; SELECT w.j FROM w WHERE w.j > 4 AND w.k > 5",
    "a bound of a partition key with few operators": "CREATE OPERATOR CLASS few FOR TYPE int4 USING btree "
    "AS OPERATOR 3 =, OPERATOR 5 >, FUNCTION 1 btint4cmp (int4, int4);"
    "CREATE TABLE p (k int) PARTITION BY LIST (k few); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (6);"
    "CREATE TABLE p2 PARTITION OF p DEFAULT; SELECT p.k FROM p WHERE p.k > 10",
    "a join of partitions with few rows": "CREATE TABLE p (k int) PARTITION BY HASH (k);"
    "CREATE TABLE p1 PARTITION OF p FOR VALUES WITH (MODULUS 3, REMAINDER 0);"
    "CREATE TABLE p2 PARTITION OF p FOR VALUES WITH (MODULUS 3, REMAINDER 1);"
    "CREATE TABLE p3 PARTITION OF p FOR VALUES WITH (MODULUS 3, REMAINDER 2);"
    "INSERT INTO p VALUES (NULL), (0), (2), (4); CREATE TABLE r (k int); INSERT INTO r VALUES (1), (1), (1), (1), (1);"
    "ANALYZE; SELECT 1 FROM r JOIN p ON r.k = p.k WHERE p.k BETWEEN 1 AND 10",
    "a divisor of zero that a condition excludes": RAISING + "SELECT a.i FROM a WHERE a.k <> 0 AND 10 / a.k > 1",
    "a divisor of zero that CASE excludes": RAISING
    + "SELECT CASE WHEN a.k = 0 THEN 0 ELSE 10 / a.k END AS q FROM a WHERE a.i > 3",
    "an overflow that a condition excludes": RAISING + "SELECT a.i FROM a WHERE a.k > 0 AND a.i + 1 > 4",
    "a text without a number": RAISING + "SELECT a.i FROM a WHERE a.k > 0 AND a.t::int > 3",
    "a text without a number, in a join": RAISING
    + "SELECT a.i FROM a LEFT JOIN a AS b ON a.k = b.k AND b.t::int > 3 WHERE b.k > 0",
    "a scalar subquery with several rows": RAISING
    + "SELECT a.i FROM a WHERE a.i < 0 AND a.k = (SELECT b.k FROM a AS b)",
    "a division in a view": RAISING
    + "CREATE VIEW v AS SELECT a.k, 10 / a.k AS q FROM a; SELECT v.k FROM v WHERE v.k > 0 AND v.q > 2",
    "a domain without NULLs": "CREATE DOMAIN d AS int NOT NULL; CREATE TABLE a (i d, k int);"
    "INSERT INTO a SELECT g, g FROM generate_series(1, 9) AS g; SELECT a.i FROM a WHERE a.k > 2",
    "a comparison that divides": "CREATE FUNCTION less(int, int) RETURNS bool LANGUAGE sql IMMUTABLE "
    "AS 'SELECT 1 / $1 < 1';"
    "CREATE OPERATOR <<< (LEFTARG = int, RIGHTARG = int, FUNCTION = less); CREATE TABLE a (i int);"
    "INSERT INTO a VALUES (0), (1), (2); SELECT a.i FROM a WHERE a.i <> 0 AND a.i <<< 2",
    "a trigger in another schema": "CREATE SCHEMA elsewhere; CREATE TABLE elsewhere.t (i int);"
    "INSERT INTO elsewhere.t VALUES (1), (5);"
    "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
    "CREATE TRIGGER no BEFORE UPDATE OR DELETE ON elsewhere.t FOR EACH ROW EXECUTE FUNCTION no();"
    "SELECT t.i FROM elsewhere.t WHERE t.i > 3; DROP SCHEMA elsewhere CASCADE",
}


def case_of_script(sql: str) -> Case:
    """Return a case with the statements of a script."""
    kinds = [
        Kind.QUERY if isinstance(each.stmt, ast.SelectStmt) else Kind.COMMAND for each in pglast.parse_sql(sql) or ()
    ]
    return Case("by_hand", (), tuple(map(Step, pglast.split(sql), kinds)), samples=SAMPLES)


@pytest.mark.parametrize("sql", LEGAL.values(), ids=LEGAL.keys())
def test_legal_differences_are_no_findings(sql: str, executor: Executor, arms: tuple[Arm, ...]) -> None:
    judged = judge_case(executor, assignments(ORACLES, arms), case_of_script(sql))
    assert [(finding.oracle, finding.summary) for finding in judged.findings] == []
