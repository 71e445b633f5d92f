"""Which expressions make one row of many."""

import pytest

from oracles.sql.building import expression
from oracles.sql.names import aggregates


@pytest.mark.parametrize(
    "sql",
    ["max(x)", "1 + count(*)", "(SELECT max(a.x))", "(SELECT max(a.x) FROM b)", "(SELECT 1 FROM b WHERE x = max(x))"],
)
def test_an_aggregate_of_no_column_of_the_subquery_is_of_the_query_around(sql: str) -> None:
    assert aggregates(expression(sql))


@pytest.mark.parametrize(
    "sql",
    ["a.x", "(SELECT max(b.x) FROM b)", "(SELECT max(a.x + c.x) FROM b AS c)", "(SELECT count(*) FROM b)"],
)
def test_other_aggregates_are_of_the_subquery(sql: str) -> None:
    assert not aggregates(expression(sql))
