"""Tests of the generator `set_operations` without servers: its constructs, orders, and shrinking."""

import random

import pytest

from fuzz.generators.generator import Scale
from fuzz.generators.set_operations import SetOperations
from oracles.model.case import Step
from tests.generators.drawing import select_of
from tests.generators.shrinking import assert_shrinks


@pytest.fixture(scope="module")
def queries() -> list[Step]:
    return [step for n in range(40) for step in SetOperations().generate(random.Random(f"unit/{n}"), Scale()).steps]


@pytest.mark.parametrize(
    "text", ["UNION ALL", ") UNION (", "INTERSECT ALL", "EXCEPT ALL", ") EXCEPT (", "RECURSIVE", "LIMIT", "NOT IN"]
)
def test_queries_have(queries: list[Step], text: str) -> None:
    assert any(text in step.sql for step in queries)


def test_rows_are_limited_only_under_a_total_order(queries: list[Step]) -> None:
    for step in queries:
        top = select_of(step.sql)
        assert step.ordered == ("sortClause" in top) == ("limitCount" in top), step.sql


def test_a_failing_case_shrinks() -> None:
    assert_shrinks(SetOperations(), scene=6, characters=150, construct="EXCEPT ALL")
