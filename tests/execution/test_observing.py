"""Tests of the conversion of hand-made replies to observations."""

import json

import pytest

from fuzz.execution import messages
from fuzz.execution.observing import Reader
from fuzz.execution.session import frames_of
from fuzz.execution.wire import Reply
from oracles.internal_error import InternalError
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Finding
from oracles.model.observation import CaseObservation, Observation, Outcome, Residue, Run
from oracles.model.oracle import duel
from tests.oracles.observed import ok, row, seen

QUERY = Step("SELECT 1", Kind.QUERY)


def observed(*replies: Reply, step: Step = QUERY, explain: bool = True) -> Observation:
    """Return the observation of a case of one step."""
    case, run = Case("by_hand", (), (step,)), Run("patched", (), explain=explain)
    (found,) = Reader(case, run, frames_of(case, run), {}).observations(replies)
    return found


def explained(*texts: str) -> Reply:
    return Reply([row(text) for text in texts], [(messages.COMMAND_COMPLETE, b"EXPLAIN\0")], "I")


def test_an_explained_step_has_its_plan() -> None:
    plan = [{"Plan": {"Node Type": "Result"}, "Planning Time": 0.1}]
    found = observed(explained(json.dumps(plan)))
    assert (found.plan, found.outcome, found.rows) == (plan[0], Outcome.OK, ())


def test_a_step_without_anything_to_plan_has_no_plan() -> None:
    found = observed(explained("[]"))
    assert (found.plan, found.outcome) == (None, Outcome.OK)


@pytest.mark.parametrize("text", [" ", '[{"Plan": {"Rows": 1,}}]', "[" * 100_000, '"Plan"', "[1]"])
def test_an_explanation_that_is_no_json_is_an_internal_error(text: str) -> None:
    step = observed(explained(text))
    assert (step.outcome, step.sqlstate, step.plan) == (Outcome.ERROR, "XX000", None)
    case, arms = Case("by_hand", (), (QUERY,)), ("master", "patched")
    runs = duel(case, arms)
    observations = {run: seen(ok("1")) for run in runs} | {
        Run(arm, (), explain=True): CaseObservation(arm, (each,), residue=Residue())
        for arm, each in zip(arms, (observed(explained("[]")), step), strict=True)
    }
    verdicts = InternalError().judge(case, arms, observations)
    assert isinstance(verdicts, tuple)
    (finding,) = (verdict for verdict in verdicts if isinstance(verdict, Finding))
    assert finding.arms == arms
    assert finding.origin == "XX000 the output of EXPLAIN (FORMAT JSON) cannot be read in an unnamed function"
