"""Tests of `aggregates`: expressions that aggregate the rows of their query."""

import pytest

from oracles.sql.building import expression
from oracles.sql.names import aggregates


@pytest.mark.parametrize(
    "sql",
    ["max(x)", "1 + count(*)", "(SELECT max(a.x))", "(SELECT max(a.x) FROM b)", "(SELECT 1 FROM b WHERE x = max(x))"],
)
def test_aggregates_of_the_outer_query(sql: str) -> None:
    assert aggregates(expression(sql))


@pytest.mark.parametrize(
    "sql",
    ["a.x", "(SELECT max(b.x) FROM b)", "(SELECT max(a.x + c.x) FROM b AS c)", "(SELECT count(*) FROM b)"],
)
def test_aggregates_of_the_subquery(sql: str) -> None:
    assert not aggregates(expression(sql))
