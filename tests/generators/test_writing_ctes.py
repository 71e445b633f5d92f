"""Tests of the generator `writing_ctes` without servers: its constructs, targets, and shrinking."""

import re

import pytest

from fuzz.generators.writing_ctes import WritingCtes
from oracles.model.case import Kind, Step
from tests.generators.drawing import cases_of
from tests.generators.shrinking import assert_shrinks

_TARGET = re.compile(r"(?:UPDATE|DELETE FROM|INSERT INTO) (w\d) AS")


@pytest.fixture(scope="module")
def steps() -> list[Step]:
    return [step for case in cases_of(WritingCtes, 40) for step in case.steps]


@pytest.mark.parametrize(
    "text", ["DO NOTHING", "DO UPDATE", "USING changed", "EXISTS", "LIMIT 2", "FULL JOIN", "EXCEPT", "ROLLBACK"]
)
def test_steps_have(steps: list[Step], text: str) -> None:
    assert any(text in step.sql for step in steps)


def test_the_parts_of_a_statement_change_different_tables(steps: list[Step]) -> None:
    for step in steps:
        targets = _TARGET.findall(step.sql)
        assert len(set(targets)) == len(targets), step.sql
        assert (step.kind is Kind.QUERY) == (not targets and step.sql not in ("BEGIN", "ROLLBACK")), step.sql


def test_a_failing_case_shrinks() -> None:
    assert_shrinks(WritingCtes(), scene=6, characters=250, construct="EXISTS")
