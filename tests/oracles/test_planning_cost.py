"""Tests of the oracle `planning_cost` on hand-made planning times and memory."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from oracles.framework.shared_runs import PLANNED
from oracles.model.observation import CaseObservation, Observation, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable, Verdict
from oracles.planning_cost import PlanningCost
from tests.oracles.observed import LOST, case, finding, judged_with_runs, ok, on_second_step, query, seen

CASE = case(query("SELECT 1"), query("SELECT 2"), samples=(PLANNED,))


def planned(milliseconds: float, kilobytes: int = 100) -> Observation:
    node = {"Node Type": "Result", "Total Cost": 1.0}
    return replace(ok(), plan={"Plan": node, "Planning Time": milliseconds, "Planning": {"Memory Used": kilobytes}})


def judged(respond: Callable[[Run], CaseObservation]) -> tuple[tuple[Verdict, ...], list[Run]]:
    return judged_with_runs(PlanningCost(), CASE, respond)


def by_arm(master: Observation, patched: Observation) -> Callable[[Run], CaseObservation]:
    return on_second_step(planned(1.0), master, patched)


def test_a_slower_planner_is_found_after_twenty_rounds() -> None:
    verdicts, runs = judged(by_arm(planned(10.0), planned(20.0)))
    found = finding(verdicts)
    assert found.step == 1
    assert "2.00 times as much" in found.summary
    rounds = [run for run in runs if run.plannings > 2]
    assert len(rounds) == 2 * 20


def test_rounds_plan_the_slower_query_alone_on_one_arm_at_a_time() -> None:
    _, runs = judged(by_arm(planned(10.0), planned(20.0)))
    rounds = [run for run in runs if run.plannings > 2]
    assert [run.arm for run in rounds] == ["master", "patched"] * 20
    assert {run.instead for run in rounds} == {((0, "SELECT"),)}


def test_a_planner_that_takes_more_memory_is_found() -> None:
    verdicts, _ = judged(by_arm(planned(1.0, 1000), planned(1.0, 2000)))
    assert finding(verdicts).origin.startswith("planner memory")


@pytest.mark.parametrize(
    ("master", "patched"),
    [
        (planned(20.0), planned(10.0)),  # faster
        (planned(10.0), planned(12.4)),  # within the margin
        (planned(0.1), planned(0.5)),  # a large factor of a negligible time
        (planned(1.0, 100), planned(1.0, 160)),  # one or two larger structs
        (planned(1.0, 10_000), planned(1.0, 10_900)),
    ],
)
def test_small_increases_are_not_planned_again(master: Observation, patched: Observation) -> None:
    verdicts, runs = judged(by_arm(master, patched))
    assert verdicts == (Agree(2),)
    assert all(run.plannings <= 2 for run in runs)


def test_a_round_within_the_margin_ends_the_rounds() -> None:
    def respond(run: Run) -> CaseObservation:
        slow = run.arm == "patched" and run.repetition != 3
        return seen(planned(1.0), planned(30.0 if slow else 10.0))

    verdicts, runs = judged(respond)
    assert verdicts == (Unstable("planning time: not in all rounds"), Agree(2))
    assert len([run for run in runs if run.plannings > 2]) == 2 * 3


def test_a_lost_connection_is_inconclusive() -> None:
    lost = CaseObservation("", (planned(1.0), LOST))
    verdicts, _ = judged(lambda run: lost if run.arm == "patched" else seen(planned(1.0), planned(1.0)))
    assert verdicts == (Inconclusive("connection lost"), NotApplicable())
