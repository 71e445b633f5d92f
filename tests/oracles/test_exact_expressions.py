"""Tests of `exact_columns`, and of queries that pick values of exact columns only."""

import pytest

from oracles.model.case import Kind, Step
from oracles.sql.distinguishable_values import inexact_types, is_exact
from oracles.sql.exact_expressions import exact_columns

TABLE = Step("CREATE TABLE t (i int, n numeric, f float8, v interval, s text, d date, c char(3), b bpchar, e int[])")
COLUMNS = frozenset({"i", "s", "d", "c", "e"})


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT 1", COLUMNS),
        ("CREATE TABLE u (i numeric, j numeric(4, 1))", COLUMNS - {"i"}),
        ("ALTER TABLE t ALTER i TYPE numeric", COLUMNS - {"i"}),
        ("ALTER TABLE t RENAME n TO s", COLUMNS - {"s"}),
        ("CREATE VIEW w (d) AS SELECT n FROM t", COLUMNS - {"d"}),
        ("CREATE VIEW w AS SELECT s::interval FROM t", COLUMNS - {"s"}),
        ("CREATE TABLE u AS SELECT n AS e FROM t", COLUMNS - {"e"}),
        ("INSERT INTO t (i) SELECT n AS s FROM t", COLUMNS),
        ("CREATE COLLATION c (provider = icu, locale = 'und', deterministic = false)", frozenset()),
    ],
)
def test_columns_of_exact_types(sql: str, columns: frozenset[str]) -> None:
    steps = [TABLE, Step(sql, Kind.QUERY if sql == "SELECT 1" else Kind.COMMAND)]
    assert exact_columns(steps, inexact_types(steps)) == columns


def test_numbers_of_one_scale_are_exact() -> None:
    steps = [Step("CREATE TABLE t (n numeric(4, 1), m numeric(9, 1))")]
    assert exact_columns(steps, inexact_types(steps)) == {"n", "m"}


@pytest.mark.parametrize(
    "value",
    [
        *("i", "i + 1", "s || 'a'", "max(i)", "count(n)", "n > 1", "n::text", "CASE WHEN n > 1 THEN i ELSE 0 END"),
        *("coalesce(s, 'a')", "upper(s)", "n IS NULL", "nullif(i, 2)", "(SELECT max(t.i) FROM t)", "e[1]", "i - 1"),
    ],
)
def test_picked_values_are_exact(value: str) -> None:
    sql = f"SELECT md5(q.x::text) FROM (SELECT DISTINCT {value} AS x FROM t) AS q"
    assert is_exact(sql, ["25"], {"numeric", "interval", "float8"}, COLUMNS)
    assert not is_exact(sql, ["25"], {"numeric", "interval", "float8"})


@pytest.mark.parametrize(
    "value", ["n", "n + i", "coalesce(n, 0)", "avg(i)", "d - d", "(SELECT max(t.n) FROM t)", "q.n"]
)
def test_picked_values_are_inexact(value: str) -> None:
    sql = f"SELECT md5(q.x::text) FROM (SELECT DISTINCT {value} AS x FROM t) AS q"
    assert not is_exact(sql, ["25"], {"numeric", "interval", "float8"}, COLUMNS)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT md5(q.i::text) FROM (SELECT DISTINCT i FROM (SELECT n AS i FROM t) AS o) AS q",
        "SELECT md5(q.i::text) FROM (SELECT DISTINCT i FROM (SELECT n FROM t) AS o (i)) AS q",
        "SELECT md5(i::text) FROM t GROUP BY ROLLUP (1), n",
    ],
)
def test_names_may_be_given_to_other_values(sql: str) -> None:
    assert not is_exact(sql, ["25"], {"numeric"}, COLUMNS)
    assert is_exact("SELECT md5(i::text) FROM t GROUP BY ROLLUP (1), i", ["25"], {"numeric"}, COLUMNS)
