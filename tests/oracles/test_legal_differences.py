"""What may legally differ between two ways of asking: the logic oracles hold none of it for a wrong result."""

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
NUMBERS = """
    CREATE TABLE a (i int, n numeric);
    INSERT INTO a SELECT g, (g * 7 % 3)::numeric(10, 0) FROM generate_series(1, 20) AS g;
    INSERT INTO a SELECT g, (g * 7 % 3)::numeric(10, 2) FROM generate_series(20, 40) AS g;
    CREATE INDEX ON a (i);
    CREATE INDEX ON a (n);
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
    "an array has an order": ROWS + "SELECT a.i, ARRAY(SELECT b.i FROM b WHERE b.i > 3) FROM a WHERE a.k > 1",
    "so has one of JSON": ROWS + "SELECT a.i, JSON_ARRAY(SELECT b.i FROM b WHERE b.i > 3)::text FROM a WHERE a.k > 1",
    "a view cuts": ROWS
    + "CREATE VIEW v AS SELECT b.i, b.k FROM b WHERE b.i > 2 ORDER BY b.k LIMIT 7; SELECT v.i FROM v WHERE v.i > 3",
    "a view counts": ROWS
    + "CREATE SEQUENCE s; CREATE VIEW v AS SELECT b.i, nextval('s') AS n FROM b; SELECT v.n FROM v WHERE v.i > 3",
    "a view of a view shows settings": "CREATE VIEW u AS SELECT name, setting FROM pg_settings;"
    "CREATE VIEW v AS SELECT u.name, u.setting FROM u WHERE u.name LIKE 'enable%';"
    "SELECT v.name, v.setting FROM v WHERE v.name > 'e'",
    "an aggregate is of the query around": ROWS + "SELECT (SELECT max(a.i)) AS m FROM a WHERE a.k > 1",
    "also of distinct rows": ROWS + "SELECT DISTINCT (SELECT max(a.i)) AS m FROM a WHERE a.k > 1",
    "also of a join": ROWS + "SELECT (SELECT max(a.i)) AS m FROM a LEFT JOIN b ON a.i = b.i",
    "ORDER BY aggregates": ROWS + "SELECT 1 AS o FROM a LEFT JOIN b ON a.i = b.k ORDER BY count(*)",
    "floats are added": FLOATS + "SELECT sum(a.f), avg(a.f) FROM a LEFT JOIN b ON a.i = b.i",
    "floats of one side are added": FLOATS
    + "SELECT sum(a.f) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.i = a.i) AND a.i > 2",
    "floats are added to text": FLOATS + "SELECT sum(a.f)::text AS t FROM a JOIN b ON a.i % 3 = b.k WHERE a.i > 3",
    "numbers with and without zeros": NUMBERS + "SELECT DISTINCT a.n FROM a WHERE a.i > 3 AND a.i <> 5",
    "the largest one with or without": NUMBERS + "SELECT max(a.n), min(a.n) FROM a WHERE a.i % 3 > 0",
    "the largest one of a join": NUMBERS + "SELECT max(a.n) FROM a LEFT JOIN a AS b ON a.i = b.i + 17",
    "letters that are equal": FOLDING
    + "SELECT DISTINCT c.t FROM (SELECT b.t FROM b UNION ALL SELECT a.t FROM a) AS c WHERE c.t > 'c'",
    "a subquery has a collation": FOLDING + "SELECT a.i, a.t FROM a WHERE a.t > (SELECT min(b.t) FROM b)",
    "a list takes a common type": "CREATE TABLE a (v varchar, c char(5)); INSERT INTO a VALUES ('a ', 'a');"
    "SELECT a.c FROM a WHERE a.v IN (SELECT b.c FROM a AS b)",
    "a float is not printed whole": "SET extra_float_digits = -5; CREATE TABLE a (i int, f float8);"
    "INSERT INTO a SELECT g, g / 7.0 FROM generate_series(1, 9) AS g;"
    "SELECT a.i FROM a WHERE a.f = (SELECT max(b.f) FROM a AS b); SELECT a.i FROM a WHERE a.f IN (SELECT f FROM a)",
    "a zone is not printed unmistakably": "SET DateStyle = 'SQL, DMY'; SET TimeZone = 'Asia/Kolkata';"
    "CREATE TABLE a (n timestamptz); INSERT INTO a VALUES ('2024-11-03 05:00:00+00');"
    "SELECT a.n FROM a WHERE a.n IN (SELECT b.n FROM a AS b)",
    "a default is the time": "CREATE TABLE a (i int, d timestamptz DEFAULT clock_timestamp());"
    "INSERT INTO a (i) SELECT g FROM generate_series(1, 5) AS g; SELECT a.i FROM a WHERE a.i > 2",
    "a view's bound and the query's": "CREATE TABLE p (i int, k int);"
    "INSERT INTO p SELECT g, g % 7 FROM generate_series(1, 600) AS g; ANALYZE p;"
    "CREATE VIEW w AS SELECT i + 0 AS j, k FROM p WHERE k > 2; SELECT w.j FROM w WHERE w.j > 4 AND w.k > 5",
    "a trigger elsewhere": "CREATE SCHEMA elsewhere; CREATE TABLE elsewhere.t (i int);"
    "INSERT INTO elsewhere.t VALUES (1), (5);"
    "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
    "CREATE TRIGGER no BEFORE UPDATE OR DELETE ON elsewhere.t FOR EACH ROW EXECUTE FUNCTION no();"
    "SELECT t.i FROM elsewhere.t WHERE t.i > 3; DROP SCHEMA elsewhere CASCADE",
}


def played(sql: str) -> Case:
    """Return the case of a script."""
    kinds = [
        Kind.QUERY if isinstance(each.stmt, ast.SelectStmt) else Kind.COMMAND for each in pglast.parse_sql(sql) or ()
    ]
    return Case("by_hand", (), tuple(map(Step, pglast.split(sql), kinds)), samples=SAMPLES)


@pytest.mark.parametrize("sql", LEGAL.values(), ids=LEGAL.keys())
def test_what_may_differ_is_no_finding(sql: str, executor: Executor, arms: tuple[Arm, ...]) -> None:
    judged = judge_case(executor, assignments(ORACLES, arms), played(sql))
    assert [(finding.oracle, finding.summary) for finding in judged.findings] == []
