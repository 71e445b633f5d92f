"""Tests of the reach of `transition_tables` on a real server: successful statements, and rows in both logs."""

from typing import ClassVar

import pytest

from fuzz.engines.seeded import case_of
from fuzz.execution.executor import Executor
from fuzz.generators.generator import Scale
from oracles.model.case import CaseId
from oracles.model.observation import Run
from tests.generators.census import SEED, Census, Reach, census_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASES = 40


@pytest.fixture(scope="module")
def census(executor: Executor) -> Census:
    return census_of(executor, "transition_tables", CASES, {})


class TestReach(Reach):
    queries = CASES * 15
    shares: ClassVar = {"rows": 0.6}
    paths = ("rows",)


@pytest.mark.parametrize("event", ["INSERT", "UPDATE", "DELETE"])
def test_each_event_is_logged_by_statement_triggers(executor: Executor, event: str) -> None:
    logged = 0
    for index in range(10):
        case = case_of(CaseId(SEED, "transition_tables", index), Scale())
        run = Run("only", case.modes)
        seen = executor.observe(case, [run])[run].steps
        reported = zip(case.all_steps, seen, strict=True)
        logged += sum(event.encode() in row for step, each in reported if step.same_rows for row in each.rows)
    assert logged >= 100
