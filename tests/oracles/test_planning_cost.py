"""Planning times and memory made by hand: what costs too much, and what only looks like it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fuzz.execution.judging import judge_case
from oracles.framework.planned import PLANNED
from oracles.model.case import Case
from oracles.model.observation import CaseObservation, Observation, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable, Verdict
from oracles.planning_cost import PlanningCost
from tests.oracles.observed import LOST, ByHand, case, finding, ok, query, seated, seen

CASE = case(query("SELECT 1"), query("SELECT 2"), samples=(PLANNED,))
ARMS = ("master", "patched")


def planned(milliseconds: float, kilobytes: int = 100) -> Observation:
    node = {"Node Type": "Result", "Total Cost": 1.0}
    return replace(ok(), plan={"Plan": node, "Planning Time": milliseconds, "Planning": {"Memory Used": kilobytes}})


def judged(respond: Callable[[Run], CaseObservation], of: Case = CASE) -> tuple[tuple[Verdict, ...], list[Run]]:
    executor = ByHand(respond)
    verdicts = tuple(verdict for _, verdict in judge_case(executor, seated((PlanningCost(),), ARMS), of).verdicts)
    return verdicts, executor.asked


def by_arm(master: Observation, patched: Observation) -> Callable[[Run], CaseObservation]:
    """Plan the first step alike on both arms, the second as said."""
    seconds = {"master": master, "patched": patched}
    return lambda run: seen(planned(1.0), seconds[run.arm])


def test_a_slower_planner_is_found_after_twenty_rounds() -> None:
    verdicts, asked = judged(by_arm(planned(10.0), planned(20.0)))
    found = finding(verdicts)
    assert found.step == 1
    assert "2.00 times as much" in found.summary
    rounds = [run for run in asked if run.plannings > 2]
    assert len(rounds) == 2 * 20


def test_rounds_plan_on_one_arm_at_a_time_and_only_what_is_in_question() -> None:
    _, asked = judged(by_arm(planned(10.0), planned(20.0)))
    rounds = [run for run in asked if run.plannings > 2]
    assert [run.arm for run in rounds] == ["master", "patched"] * 20
    assert {run.instead for run in rounds} == {((0, "SELECT"),)}


def test_a_hungrier_planner_is_found() -> None:
    verdicts, _ = judged(by_arm(planned(1.0, 1000), planned(1.0, 2000)))
    assert finding(verdicts).origin.startswith("planner memory")


@pytest.mark.parametrize(
    ("master", "patched"),
    [
        (planned(20.0), planned(10.0)),  # faster
        (planned(10.0), planned(12.4)),  # within the margin
        (planned(0.1), planned(0.5)),  # much more of next to nothing
        (planned(1.0, 100), planned(1.0, 160)),  # a larger struct or two
        (planned(1.0, 10_000), planned(1.0, 10_900)),
    ],
)
def test_what_costs_little_more_is_not_looked_at_again(master: Observation, patched: Observation) -> None:
    verdicts, asked = judged(by_arm(master, patched))
    assert verdicts == (Agree(2),)
    assert all(run.plannings <= 2 for run in asked)


def test_one_round_that_says_otherwise_ends_it() -> None:
    def respond(run: Run) -> CaseObservation:
        slow = run.arm == "patched" and run.repetition != 3
        return seen(planned(1.0), planned(30.0 if slow else 10.0))

    verdicts, asked = judged(respond)
    assert verdicts == (Unstable("planning time: not in all rounds"), Agree(2))
    assert len([run for run in asked if run.plannings > 2]) == 2 * 3


def test_a_lost_connection_proves_nothing() -> None:
    lost = CaseObservation("", (planned(1.0), LOST))
    verdicts, _ = judged(lambda run: lost if run.arm == "patched" else seen(planned(1.0), planned(1.0)))
    assert verdicts == (Inconclusive("connection lost"), NotApplicable())
