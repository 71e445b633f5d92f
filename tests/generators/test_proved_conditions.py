"""Tests of the generator `proved_conditions` without servers: its constructs, conditions, and shrinking."""

import re

import pytest

from fuzz.generators.proved_conditions import ProvedConditions
from tests.generators.drawing import cases_of
from tests.generators.shrinking import assert_shrinks

CASES = cases_of(ProvedConditions, 60)
CONDITION = re.compile(r"WHERE (.*)$")


@pytest.mark.parametrize(
    "construct",
    [
        "CREATE INDEX ON t (a) WHERE", "CREATE UNIQUE INDEX ON t (id) WHERE", "CHECK (", "constraint_exclusion",
        " IS NOT NULL", "NOT (", " IN (", "ANY (ARRAY[", "<> ALL (ARRAY[", "::int8", "timestamp '",
        "IS NOT DISTINCT FROM", "f IS NOT TRUE",
        "EXISTS (", "LEFT JOIN", "RETURNING id", "ON CONFLICT (id) WHERE", "ON CONFLICT DO NOTHING",
    ],
)  # fmt: skip
def test_statements_have(construct: str) -> None:
    assert any(construct in step.sql for case in CASES for step in case.all_steps)


def test_many_queries_have_a_condition_of_the_scene() -> None:
    queries = [(case, step.sql) for case in CASES for step in case.steps if "WHERE" in step.sql]
    same = [
        sql
        for case, sql in queries
        if any((found := CONDITION.search(step.sql)) and found[1] in sql for step in case.scene if "INDEX" in step.sql)
    ]
    assert 0.05 < len(same) / len(queries) < 0.5


def test_a_failing_case_shrinks() -> None:
    assert_shrinks(ProvedConditions(), scene=6, characters=150, construct="IS NOT NULL")
