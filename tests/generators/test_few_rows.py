"""Tests of the generator `few_rows` without servers: its constructs, sizes, orders, and shrinking."""

import random

import pytest

from fuzz.generators.few_rows import FewRows
from fuzz.generators.generator import Scale
from oracles.model.case import Case
from tests.generators.drawing import select_of
from tests.generators.shrinking import assert_shrinks


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [FewRows().generate(random.Random(f"unit/{n}"), Scale()) for n in range(40)]


@pytest.mark.parametrize(
    "text", ["FULL JOIN", "LEFT JOIN", "NOT EXISTS", "NOT IN", "HAVING", "GROUP BY", "OVER (", "UNION", "WITH c AS"]
)
def test_queries_have(cases: list[Case], text: str) -> None:
    assert any(text in step.sql for case in cases for step in case.steps)


def test_rows_are_limited_only_under_a_total_order(cases: list[Case]) -> None:
    for step in (step for case in cases for step in case.steps):
        top = select_of(step.sql)
        assert step.ordered == ("sortClause" in top), step.sql
        assert step.ordered or "limitCount" not in top, step.sql


def test_tables_have_no_long_text(cases: list[Case]) -> None:
    assert not any("w1" in step.sql for case in cases for step in case.scene)


def test_cases_have_more_queries_than_those_of_other_generators(cases: list[Case]) -> None:
    assert max(len(case.steps) for case in cases) == 2 * Scale().queries


def test_a_failing_case_shrinks() -> None:
    assert_shrinks(FewRows(), scene=8, steps=2, characters=160)
