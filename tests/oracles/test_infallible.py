"""Tests of `is_infallible`: queries that cannot fail at run time, by their text and the case's tables."""

import pytest

from oracles.model.case import Kind, Step
from oracles.sql.infallible import is_infallible

SCENE = (
    "CREATE TYPE pair AS (a int, b int)",
    "CREATE TABLE t (x int, y int8, s text, n numeric(10, 1), d date, p pair) PARTITION BY RANGE (x)",
    "CREATE TABLE t_1 PARTITION OF t DEFAULT",
    "CREATE TABLE u (x int)",
    "CREATE VIEW v AS SELECT x, s FROM t WHERE x > 3",
    "CREATE VIEW w AS SELECT x / x AS z FROM t",
    "CREATE TABLE made AS SELECT point(1, 2) AS x",
    "CREATE FUNCTION min(text) RETURNS text LANGUAGE sql AS 'SELECT $1'",
    "INSERT INTO t (x) SELECT 6 / g FROM generate_series(1, 3) AS g",
)
INFALLIBLE = (
    "SELECT t.x, s::text FROM t LEFT JOIN u ON t.x = u.x AND (t.x < 3) IS NULL WHERE NOT t.y BETWEEN 2 AND 5",
    "SELECT count(*), sum(x), sum(n), max(length(s)), sum(hashtextextended(q::text, 0)) FROM t AS q GROUP BY d",
    "SELECT x FROM v WHERE s LIKE 'a%' AND x IN (1, 2) OR x % 10 = 3 ORDER BY 1 LIMIT 3",
    "WITH c AS (SELECT x FROM u) SELECT * FROM c UNION ALL SELECT g FROM generate_series(1, 3) AS g",
    "SELECT x FROM t WHERE d > '2024-01-01'::date AND n < 2.5 AND s <> ALL (ARRAY['a', 'b']) AND p = ROW(1, 2)",
    "SELECT x FROM t WHERE x > (SELECT max(u.x) FROM u) AND EXISTS (SELECT 1 / 2) AND y NOT IN (SELECT u.x FROM u)",
    "SELECT CASE WHEN x > 2 THEN coalesce(s, 'a') ELSE nullif(s, 'b') END || '.' FROM t",
    "SELECT x FROM t WHERE x = (SELECT u.x FROM u WHERE u.x < t.x LIMIT 1)",
    "SELECT q.* FROM (VALUES (2), (NULL)) AS c (n) CROSS JOIN LATERAL (SELECT x FROM t LIMIT c.n) AS q",
)
FALLIBLE = (
    "SELECT x + 1 FROM t",
    "SELECT 5 / x FROM t",
    "SELECT 5 / 0 FROM t",
    "SELECT s::int FROM t",
    "SELECT y::int FROM t",
    "SELECT x FROM t WHERE x = (SELECT u.x FROM u)",
    "SELECT x FROM t WHERE x = (SELECT max(t.x) FROM u)",
    "SELECT x FROM t WHERE x = (SELECT generate_series(1, 3))",
    "SELECT x FROM t WHERE x = (SELECT 1 UNION ALL SELECT 2)",
    "SELECT s FROM t WHERE s LIKE s",
    r"SELECT s FROM t WHERE s LIKE 'a\'",
    "SELECT s FROM t WHERE s ~ 'a'",
    "SELECT substring(s, 1, x) FROM t",
    "SELECT x FROM t LIMIT -1",
    "SELECT x FROM t LIMIT (SELECT 1)",
    "SELECT q.* FROM (VALUES (2), (-1)) AS c (n) CROSS JOIN LATERAL (SELECT x FROM t LIMIT c.n) AS q",
    "SELECT q.* FROM u CROSS JOIN LATERAL (SELECT x FROM t LIMIT u.x) AS q",
    "SELECT x FROM t FOR UPDATE",
    "SELECT g FROM generate_series(1, 9, 0) AS g",
    "SELECT z FROM w",
    "SELECT count(*) FROM made AS a JOIN made AS b ON a.x = b.x",
    "SELECT min(s) FROM t",
    "SELECT x FROM elsewhere",
    "SELECT '1e400'::float8 > x FROM t",
    "SELECT sum(1e131071) FROM t",
    "SELECT n::numeric FROM t",
    "SELECT d = now() FROM t",
    "SELECT CASE WHEN true THEN d ELSE '2024-01-01'::timestamp END FROM t",
    "WITH RECURSIVE c AS (SELECT 1 AS x UNION ALL SELECT x FROM c) SELECT x FROM c",
    "UPDATE t SET x = x",
    "SELECT x FROM t; SELECT x FROM t",
)
REDEFINING = (
    "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
    "CREATE OPERATOR = (LEFTARG = int, RIGHTARG = int, FUNCTION = raises)",
    "CREATE CAST (int AS text) WITH FUNCTION raises(int)",
    "CREATE POLICY raising ON t USING (1 / x > 0)",
    "CREATE RULE raising AS ON SELECT TO t DO INSTEAD SELECT 1 / 0",
    "CREATE FOREIGN TABLE f (x int) INHERITS (t) SERVER elsewhere",
    "ALTER TABLE t ADD c point",
    "ALTER TABLE t ADD c int[]",
    "DO $$BEGIN EXECUTE 'ALTER TABLE t ALTER x TYPE point USING NULL'; END$$",
    "ALTER TABLE t ADD c int GENERATED ALWAYS AS (1 / x) VIRTUAL",
    "SET client_encoding = 'latin1'",
    "SET NAMES 'latin1'",
)


def case_of(*more: str) -> tuple[Step, ...]:
    """Return the statements of a case."""
    return (*map(Step, (*SCENE, *more)), Step("SELECT 1 / x FROM t", Kind.QUERY))


@pytest.mark.parametrize("sql", INFALLIBLE)
def test_a_query_of_what_cannot_fail_is_infallible(sql: str) -> None:
    assert is_infallible(sql, case_of())


@pytest.mark.parametrize("sql", FALLIBLE)
def test_what_may_fail_is_not(sql: str) -> None:
    assert not is_infallible(sql, case_of())


@pytest.mark.parametrize("sql", REDEFINING)
def test_no_query_is_where_operators_or_tables_may_mean_something_else(sql: str) -> None:
    assert not is_infallible("SELECT x FROM t WHERE x = 3", case_of(sql))
