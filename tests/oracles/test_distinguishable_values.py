"""Tests of `inexact_types` and `is_exact`: types with distinguishable equal values, and queries that show them."""

import pytest

from oracles.model.case import Step
from oracles.sql.distinguishable_values import inexact_types, inexact_views, is_exact
from oracles.sql.exact_expressions import exact_columns


@pytest.mark.parametrize(
    ("sql", "types"),
    [
        ("CREATE TABLE t (a numeric, b decimal(5, 2)[], c real)", {"numeric of 2 digits", "numeric", "float4"}),
        ("CREATE TABLE t (a numeric(5, 2), b int, c char(5))", {"numeric of 2 digits"}),
        ("CREATE TABLE t (a numeric(5, 2), b numeric(9, 2))", {"numeric of 2 digits"}),
        ("CREATE TABLE t (a numeric(5, 2), b numeric(5))", {"numeric"}),
        ("ALTER TABLE t ADD b interval", {"interval"}),
        ("CREATE DOMAIN d AS double precision", {"float8"}),
        ("CREATE TYPE c AS (a jsonb)", {"jsonb"}),
        ("CREATE COLLATION c (provider = icu, locale = 'und', deterministic = false)", {"text", "bpchar"}),
        (
            "CREATE TABLE t AS SELECT 1",
            {"numeric", "interval", "jsonb", "citext", "tsquery", "bpchar", "float4", "float8"},
        ),
        ("INSERT INTO t SELECT '1'::numeric, '1 day'::interval", set()),
        ("COPY what is no SQL", set()),
        ("CREATE VIEW v AS SELECT x::interval, 1.5 FROM t", {"interval", "numeric of 1 digits"}),
        ("CREATE VIEW v AS SELECT avg(x) FROM t", {"numeric"}),
    ],
)
def test_types_are_those_of_stored_values(sql: str, types: set[str]) -> None:
    assert inexact_types([Step(sql)]) == types


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT n FROM t",
        "SELECT n FROM t GROUP BY n",
        "SELECT n FROM t UNION SELECT n FROM u",
        "SELECT n FROM (SELECT max(n) AS n FROM t) AS q",
        "SELECT n FROM t EXCEPT ALL SELECT n FROM u",
        "SELECT n FROM t ORDER BY n LIMIT 1",
        "SELECT ARRAY(SELECT n FROM t ORDER BY n)",
        "SELECT sum(DISTINCT n) FROM t",
    ],
)
def test_one_of_equal_values_is_picked(sql: str) -> None:
    assert not is_exact(sql, ["23", "1700"], {"numeric"})
    assert is_exact(sql, ["23", "1700"], {"interval"})
    assert is_exact(sql, ["23"], {"numeric"})


def test_all_values_are_shown() -> None:
    for sql in ("SELECT n FROM t WHERE n > 1", "SELECT n FROM t UNION ALL SELECT n FROM u", "SELECT sum(n) FROM t"):
        assert is_exact(sql, ["1700"], {"numeric"})


def test_a_sum_that_is_not_shown_may_be_of_floats() -> None:
    assert is_exact("SELECT sum(x), count(*) FROM t", ["20"], {"float8"})
    for sql in ("SELECT sum(x)::text FROM t", "SELECT 1 FROM t HAVING avg(x) > 1"):
        assert not is_exact(sql, ["25"], {"float8"})
        assert is_exact(sql, ["25"], {"numeric"})


def test_rows_and_types_of_users_may_hold_inexact_values() -> None:
    for shown in ("2249", "pair"):
        assert not is_exact("SELECT DISTINCT t FROM t", [shown], {"numeric"})
        assert is_exact("SELECT DISTINCT t FROM t", [shown], ())


@pytest.mark.parametrize(
    "value",
    ["x::numeric", "trim_scale(x)", "make_interval(days => x)", "x * 1.5", "x ^ 2", "x::bpchar", "to_jsonb(x)"],
)
def test_a_query_may_compute_inexact_values(value: str) -> None:
    assert not is_exact(f"SELECT DISTINCT {value} FROM t", ["25"], ())
    assert not is_exact(f"SELECT max(y)::text FROM (SELECT {value} AS y FROM t) AS q", ["25"], ())
    assert is_exact(f"SELECT {value} FROM t", ["25"], ())


@pytest.mark.parametrize("value", ["x", "3000000000", "x::char(3)", "lower(x)", "x::timestamp", "date_trunc('day', x)"])
def test_other_values_are_exact(value: str) -> None:
    assert is_exact(f"SELECT DISTINCT {value} FROM t", ["25"], ())


@pytest.mark.parametrize("value", ["1.5", "'2.5'::numeric", "n + 1.5", "CASE WHEN x THEN 1.5 ELSE '-3.0'::numeric END"])
def test_numbers_of_equal_scale_are_exact(value: str) -> None:
    sql = f"SELECT DISTINCT {value} FROM t"
    assert is_exact(sql, ["1700"], ())
    assert is_exact(sql, ["1700"], {"numeric of 1 digits"})
    assert not is_exact(sql, ["1700"], {"numeric of 2 digits"})


@pytest.mark.parametrize(
    "value", ["CASE WHEN x THEN 1.5 ELSE 1.50 END", "x * 1.5", "'1e3'::numeric", "NULL::numeric", "7.5::numeric / 2"]
)
def test_numbers_of_different_scale_are_inexact(value: str) -> None:
    assert not is_exact(f"SELECT DISTINCT {value} FROM t", ["1700"], ())
    assert is_exact(f"SELECT {value} FROM t", ["1700"], ())


def test_conditions_show_no_values() -> None:
    assert is_exact("SELECT DISTINCT x FROM t WHERE x > 1.5 AND isfinite(x::float8)", ["23"], ())
    assert is_exact("SELECT DISTINCT x, y = 1.5, y::numeric IS NULL FROM t JOIN u ON sqrt(x) = sqrt(y)", ["23"], ())
    assert is_exact("SELECT max(x) FILTER (WHERE y::float8 > 2) FROM t", ["23"], ())


def test_casts_to_plain_types_are_exact() -> None:
    assert is_exact("SELECT DISTINCT x::numeric::text, (y ^ 2)::int8 FROM t", ["25"], ())
    assert not is_exact("SELECT DISTINCT x::text::numeric FROM t", ["1700"], ())
    assert not is_exact("SELECT max(x::numeric)::text FROM t", ["25"], ())


def test_conditions_on_inexact_results_are_inexact() -> None:
    made = "SELECT 1 FROM (SELECT x::float8 AS y FROM t) AS q"
    assert not is_exact(f"{made} WHERE (SELECT max(y) FROM u)::text > 'a'", ["23"], ())
    assert not is_exact(f"{made} HAVING sum(y) > 1", ["23"], ())
    assert not is_exact("SELECT 1 FROM t WHERE (SELECT sum(y::float8) FROM u) > 1", ["23"], ())


def test_grouping_by_inexact_values_is_inexact() -> None:
    assert not is_exact("SELECT count(*) FROM (SELECT DISTINCT x::numeric AS y FROM t) AS q", ["20"], ())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT max(n)::text FROM t",
        "SELECT n::text, count(*) FROM t GROUP BY n",
        "SELECT scale(max(n)) FROM t",
        "SELECT count(*) FROM t GROUP BY n HAVING n::text = '1.0'",
        "SELECT 1 FROM t WHERE x = (SELECT max(n)::text FROM t)",
        "SELECT sum(hashtextextended(q::text, 0)) FROM (SELECT DISTINCT n FROM t) AS q",
        "WITH c AS (SELECT n FROM t UNION SELECT n FROM u) SELECT x || n FROM c",
    ],
)
def test_picked_values_are_told_apart(sql: str) -> None:
    assert not is_exact(sql, ["25"], {"numeric"})
    assert is_exact(sql, ["25"], {"numeric of 2 digits"})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT n::text FROM t",
        "SELECT max(n::text) FROM t",
        "SELECT count(*), x FROM t WHERE n::text > 'a' GROUP BY x",
        "SELECT max(n) > 1 FROM t WHERE n::text > 'a'",
        "SELECT n::int, max(n) > 1, count(*) FROM t GROUP BY n",
        "SELECT lower(x) FROM t WHERE n IN (SELECT max(n) FROM u)",
    ],
)
def test_values_are_told_apart_before_one_is_picked(sql: str) -> None:
    assert is_exact(sql, ["25"], {"numeric"})


def test_equal_intervals_lead_to_different_times() -> None:
    assert not is_exact("SELECT d + max(v) FROM t GROUP BY d", ["1114"], {"interval"})
    assert is_exact("SELECT d + max(v) FROM t GROUP BY d", ["1114"], {"numeric"})


def test_views_may_pick_inexact_values() -> None:
    steps = [
        Step("CREATE TABLE t (i int, n numeric)"),
        Step("CREATE VIEW grouped AS SELECT n, count(*) FROM t GROUP BY n"),
        Step("CREATE VIEW above AS SELECT n FROM grouped"),
        Step("CREATE VIEW plain AS SELECT i, n FROM t"),
        Step("CREATE VIEW exact AS SELECT DISTINCT i FROM t"),
    ]
    inexact = inexact_types(steps)
    assert inexact_views(steps, inexact, exact_columns(steps, inexact)) == {"grouped", "above"}
    assert inexact_views(steps, (), exact_columns(steps, ())) == frozenset()
