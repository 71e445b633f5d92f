"""Tests of the reach of `concurrent_changes` on a real server: another session changes rows of running statements."""

import pytest

from fuzz.engines.seeded import case_of
from fuzz.execution.executor import Executor
from fuzz.generators.generator import Scale
from oracles.model.case import CaseId, Step
from oracles.model.observation import Observation, Outcome, Run
from tests.generators.census import SEED

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASES = 40
# What PostgreSQL reports about a row that another session changed.
REPORTED = (
    "could not serialize access due to concurrent update",
    "could not serialize access due to concurrent delete",
    "tuple to be locked was already moved to another partition due to concurrent update",
    "tuple to be updated was already modified by an operation triggered by the current command",
    "tuple to be deleted was already modified by an operation triggered by the current command",
    "tuple to be updated or deleted was already modified by an operation triggered by the current command",
    "MERGE command cannot affect row a second time",
)


@pytest.fixture(scope="module")
def executed(executor: Executor) -> list[tuple[Step, Observation]]:
    steps: list[tuple[Step, Observation]] = []
    for index in range(CASES):
        case = case_of(CaseId(SEED, "concurrent_changes", index), Scale())
        run = Run("only", case.modes)
        steps += zip(case.all_steps, executor.observe(case, [run])[run].steps, strict=True)
    return steps


def test_statements_succeed(executed: list[tuple[Step, Observation]]) -> None:
    failed = [f"{seen.sqlstate} {step.sql}" for step, seen in executed if _failed(seen) and not step.may_fail]
    assert not failed


def _failed(seen: Observation) -> bool:
    return seen.outcome is not Outcome.OK


@pytest.mark.parametrize("text", REPORTED)
def test_errors_tell_of_the_other_session(executed: list[tuple[Step, Observation]], text: str) -> None:
    assert any(message.text.startswith(text) for _, seen in executed for message in seen.messages)


def test_detachments_are_interrupted_and_finished(executed: list[tuple[Step, Observation]]) -> None:
    results = {
        tag: [seen.rows for step, seen in executed if tag in step.tags]
        for tag in ("detachment_pending", "detached_meanwhile")
    }
    assert all(results.values())
    assert any(b"ERROR" in row for rows in results["detachment_pending"] for row in rows)


def test_most_statements_that_may_fail_succeed(executed: list[tuple[Step, Observation]]) -> None:
    failed = [_failed(seen) for step, seen in executed if step.may_fail]
    assert 0 < sum(failed) < len(failed) / 2 + 1
