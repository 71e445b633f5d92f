"""Tests of `exact_columns`, and of queries that pick values of exact columns only."""

import pytest

from oracles.model.case import Kind, Step
from oracles.sql.distinguishable_values import inexact_types, is_exact
from oracles.sql.exact_expressions import Columns, exact_columns

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
        ("CREATE VIEW w AS SELECT e FROM t AS e", COLUMNS - {"e"}),  # rows of t
        ("CREATE VIEW w AS SELECT d.d, t.n FROM t, t AS d", COLUMNS),
        ("INSERT INTO t (i) SELECT n AS s FROM t", COLUMNS),
        ("CREATE COLLATION c (provider = icu, locale = 'und', deterministic = false)", frozenset()),
    ],
)
def test_columns_of_exact_types(sql: str, columns: frozenset[str]) -> None:
    steps = [TABLE, Step(sql, Kind.QUERY if sql == "SELECT 1" else Kind.COMMAND)]
    assert exact_columns(steps, inexact_types(steps)).others == columns


def test_numbers_of_one_scale_are_exact() -> None:
    steps = [Step("CREATE TABLE t (n numeric(4, 1), m numeric(9, 1))")]
    assert exact_columns(steps, inexact_types(steps)) == Columns(numeric=frozenset({"n", "m"}))


@pytest.mark.parametrize(
    "value",
    [
        *("i", "i + 1", "s || 'a'", "max(i)", "count(n)", "n > 1", "n::text", "CASE WHEN n > 1 THEN i ELSE 0 END"),
        *("coalesce(s, 'a')", "upper(s)", "n IS NULL", "nullif(i, 2)", "(SELECT max(t.i) FROM t)", "e[1]", "i - 1"),
    ],
)
def test_picked_values_are_exact(value: str) -> None:
    sql = f"SELECT md5(q.x::text) FROM (SELECT DISTINCT {value} AS x FROM t) AS q"
    assert is_exact(sql, ["25"], {"numeric", "interval", "float8"}, Columns(others=COLUMNS))
    assert not is_exact(sql, ["25"], {"numeric", "interval", "float8"})


@pytest.mark.parametrize(
    "value", ["n", "n + i", "coalesce(n, 0)", "avg(i)", "d - d", "(SELECT max(t.n) FROM t)", "q.n"]
)
def test_picked_values_are_inexact(value: str) -> None:
    sql = f"SELECT md5(q.x::text) FROM (SELECT DISTINCT {value} AS x FROM t) AS q"
    assert not is_exact(sql, ["25"], {"numeric", "interval", "float8"}, Columns(others=COLUMNS))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT md5(q.i::text) FROM (SELECT DISTINCT i FROM (SELECT n AS i FROM t) AS o) AS q",
        "SELECT md5(q.i::text) FROM (SELECT DISTINCT i FROM (SELECT n FROM t) AS o (i)) AS q",
        "SELECT md5(i::text) FROM t GROUP BY ROLLUP (1), n",
        "SELECT md5(q.i::text) FROM (SELECT DISTINCT i FROM t AS i) AS q",
        "SELECT md5(q.i::text) FROM (SELECT DISTINCT i FROM (SELECT n FROM t) AS i) AS q",
        "SELECT md5(q.i::text) FROM (SELECT DISTINCT i FROM i) AS q",
        "SELECT md5(q.i::text) FROM (SELECT DISTINCT i.i FROM unnest((SELECT array_agg(n) FROM t)) AS i) AS q",
        "SELECT md5(q.n::text) FROM (SELECT DISTINCT n FROM t) AS q, (SELECT count(*) AS n FROM t) AS o",
    ],
)
def test_names_may_be_given_to_other_values(sql: str) -> None:
    assert not is_exact(sql, ["25"], {"numeric"}, Columns(others=COLUMNS, inexact=frozenset({"n"})))
    exact = ("md5(i::text) FROM t GROUP BY ROLLUP (1), i", "md5(q.i::text) FROM (SELECT DISTINCT i.i FROM t AS i) AS q")
    assert all(is_exact(f"SELECT {each}", ["25"], {"numeric"}, Columns(others=COLUMNS)) for each in exact)


NUMBERS = Columns(numeric=frozenset({"n", "m"}), others=frozenset({"i", "k"}))
SCALED = {"numeric of 2 digits"}


@pytest.mark.parametrize(
    "value",
    [
        *("coalesce(n, 0)", "greatest(n, i)", "CASE WHEN k > 1 THEN n ELSE 0 END", "coalesce(n, round(m, 1))", "n / m"),
        *("n / 2", "avg(i)", "(SELECT avg(t.i) FROM t)", "coalesce(round(n), 1.5)"),
    ],
)
def test_numbers_of_several_scales_are_picked(value: str) -> None:
    assert not is_exact(f"SELECT DISTINCT {value} FROM t", ["1700"], SCALED, NUMBERS)
    summary = f"SELECT q.x FROM (SELECT max(y) AS x FROM (SELECT {value} AS y FROM t) AS o) AS q"
    assert not is_exact(summary, [], SCALED, NUMBERS)
    assert is_exact(f"SELECT {value} FROM t", ["1700"], SCALED, NUMBERS)


@pytest.mark.parametrize(
    "value",
    [
        *("coalesce(n, m)", "coalesce(i, 0)", "greatest(i, k + 1)", "CASE WHEN n > 1 THEN i END", "i / k", "n + 0"),
        *("round(avg(n), 4)", "coalesce(n, NULL)", "coalesce(round(i, 2), round(k, 2))", "count(n) / 2"),
    ],
)
def test_numbers_of_one_scale_are_picked(value: str) -> None:
    assert is_exact(f"SELECT DISTINCT {value} FROM t", ["1700"], SCALED, NUMBERS)


@pytest.mark.parametrize("operator", ["UNION", "EXCEPT", "INTERSECT ALL"])
def test_set_operations_convert_integers(operator: str) -> None:
    assert not is_exact(f"SELECT n FROM t {operator} SELECT i FROM t", ["1700"], SCALED, NUMBERS)
    assert is_exact(f"SELECT n FROM t {operator} SELECT m FROM t", ["1700"], SCALED, NUMBERS)
    assert is_exact(f"SELECT i FROM t {operator} SELECT 1", ["23"], SCALED, NUMBERS)


def test_means_are_computed_after_groups_are_made() -> None:
    for sql in (
        "SELECT k, avg(i) FROM t GROUP BY k HAVING max(n) > 1",
        "SELECT avg(i) FROM (SELECT DISTINCT n AS i FROM t) AS q",
    ):
        assert is_exact(sql, ["1700"], (), NUMBERS)
    for sql in (
        "SELECT DISTINCT avg(i) FROM t GROUP BY k",
        "SELECT max(q.x) FROM (SELECT avg(i) AS x FROM t GROUP BY k) AS q",
        "SELECT avg(i) FROM t UNION SELECT 1",
    ):
        assert not is_exact(sql, ["1700"], (), NUMBERS)
