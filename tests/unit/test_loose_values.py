"""Of which types equal values may differ, and which queries show that."""

import pytest

from oracles.case import Step
from oracles.loose_values import is_tight, loose_types


@pytest.mark.parametrize(
    ("sql", "types"),
    [
        ("CREATE TABLE t (a numeric, b decimal(5, 2)[], c real)", {"numeric", "float4"}),
        ("CREATE TABLE t (a numeric(5, 2), b int, c char(5))", set()),
        ("CREATE TABLE t (a numeric(5, 2), b numeric(9, 2))", set()),
        ("CREATE TABLE t (a numeric(5, 2), b numeric(5))", {"numeric"}),
        ("ALTER TABLE t ADD b interval", {"interval"}),
        ("CREATE DOMAIN d AS double precision", {"float8"}),
        ("CREATE TYPE c AS (a jsonb)", {"jsonb"}),
        ("CREATE COLLATION c (provider = icu, locale = 'und', deterministic = false)", {"text"}),
        ("CREATE TABLE t AS SELECT 1", {"numeric", "interval", "jsonb", "citext", "float4", "float8"}),
        ("INSERT INTO t SELECT '1'::numeric, '1 day'::interval", set()),
        ("COPY what is no SQL", set()),
    ],
)
def test_types_are_those_of_stored_values(sql: str, types: set[str]) -> None:
    assert loose_types([Step(sql)]) == types


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT n FROM t",
        "SELECT n FROM t GROUP BY n",
        "SELECT n FROM t UNION SELECT n FROM u",
        "SELECT n FROM (SELECT max(n) AS n FROM t) AS q",
    ],
)
def test_one_of_equal_values_is_picked(sql: str) -> None:
    assert not is_tight(sql, ["23", "1700"], {"numeric"})
    assert is_tight(sql, ["23", "1700"], {"interval"})
    assert is_tight(sql, ["23"], {"numeric"})


def test_all_values_are_shown() -> None:
    for sql in ("SELECT n FROM t WHERE n > 1", "SELECT n FROM t UNION ALL SELECT n FROM u", "SELECT sum(n) FROM t"):
        assert is_tight(sql, ["1700"], {"numeric"})


def test_a_sum_that_is_not_shown_may_be_of_floats() -> None:
    assert is_tight("SELECT sum(x), count(*) FROM t", ["20"], {"float8"})
    for sql in ("SELECT sum(x)::text FROM t", "SELECT 1 FROM t HAVING avg(x) > 1"):
        assert not is_tight(sql, ["25"], {"float8"})
        assert is_tight(sql, ["25"], {"numeric"})
