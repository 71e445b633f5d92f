"""CPU times and buffers of execution made by hand: what costs too much, and what only looks like it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fuzz.execution.judging import judge_case
from oracles.execution_cost import ExecutionCost
from oracles.explain.nodes import EXECUTOR_CPU, EXPLAINED
from oracles.model.case import Case
from oracles.model.observation import CaseObservation, Observation, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable, Verdict
from tests.oracles.observed import LOST, ByHand, case, finding, ok, query, seated, seen

CASE = case(query("SELECT 1"), query("SELECT 2"), samples=(EXPLAINED,))
ARMS = ("master", "patched")


def executed(milliseconds: float, buffers: int = 10, node: str = "Seq Scan") -> Observation:
    plan = {"Plan": {"Node Type": node, "Shared Hit Blocks": buffers}, EXECUTOR_CPU: milliseconds}
    return replace(ok(), plan=plan)


def judged(respond: Callable[[Run], CaseObservation], of: Case = CASE) -> tuple[tuple[Verdict, ...], list[Run]]:
    executor = ByHand(respond)
    verdicts = tuple(verdict for _, verdict in judge_case(executor, seated((ExecutionCost(),), ARMS), of).verdicts)
    return verdicts, executor.asked


def by_arm(master: Observation, patched: Observation) -> Callable[[Run], CaseObservation]:
    """Execute the first step alike on both arms, the second as given."""
    seconds = {"master": master, "patched": patched}
    return lambda run: seen(executed(1.0), seconds[run.arm])


def rounds(asked: list[Run]) -> list[Run]:
    return [run for run in asked if run.executions > 1]


def test_slower_execution_is_found_after_twenty_rounds_of_one_arm_at_a_time() -> None:
    verdicts, asked = judged(by_arm(executed(10.0), executed(20.0)))
    assert "2.00 times as much" in finding(verdicts).summary
    assert [run.arm for run in rounds(asked)] == ["master", "patched"] * 20
    assert {run.instead for run in rounds(asked)} == {((0, "SELECT"),)}


def test_more_buffers_are_found_where_time_is_the_same() -> None:
    verdicts, _ = judged(by_arm(executed(1.0, 100), executed(1.0, 500)))
    assert finding(verdicts).origin.startswith("buffers read")


@pytest.mark.parametrize(
    ("master", "patched"),
    [
        (executed(20.0), executed(10.0)),  # faster
        (executed(10.0), executed(14.0)),  # within the margin
        (executed(0.1), executed(0.9)),  # much more of next to nothing
        (executed(1.0, 10), executed(1.0, 90)),
    ],
)
def test_what_costs_little_more_is_not_executed_again(master: Observation, patched: Observation) -> None:
    verdicts, asked = judged(by_arm(master, patched))
    assert verdicts == (Agree(2),)
    assert not rounds(asked)


def test_other_plans_are_not_compared() -> None:
    verdicts, _ = judged(by_arm(executed(1.0), executed(99.0, node="Index Scan")))
    assert verdicts == (Agree(1),)


def test_a_round_within_the_margin_refutes_it() -> None:
    def respond(run: Run) -> CaseObservation:
        slow = run.arm == "patched" and run.repetition != 3
        return seen(executed(1.0), executed(30.0 if slow else 10.0))

    verdicts, asked = judged(respond)
    assert verdicts == (Unstable("CPU time of execution: not in all rounds"), Agree(2))
    assert len(rounds(asked)) == 2 * 3


def test_a_lost_connection_proves_nothing() -> None:
    lost = CaseObservation("", (executed(1.0), LOST))
    verdicts, _ = judged(lambda run: lost if run.arm == "patched" else seen(executed(1.0), executed(1.0)))
    assert verdicts == (Inconclusive("connection lost"), NotApplicable())


def test_buffers_of_parallel_plans_are_not_compared() -> None:
    def parallel(buffers: int) -> Observation:
        scan = {"Node Type": "Seq Scan"}
        gather = {"Node Type": "Gather", "Workers Planned": 1, "Shared Hit Blocks": buffers, "Plans": [scan]}
        return replace(ok(), plan={"Plan": gather, EXECUTOR_CPU: 1.0})

    verdicts, _ = judged(by_arm(parallel(100), parallel(900)))
    assert verdicts == (Agree(2),)


def test_other_numbers_of_batches_are_not_compared() -> None:
    def with_batches(batches: int, milliseconds: float) -> Observation:
        table = {"Node Type": "Hash", "Hash Batches": batches}
        plan = {"Plan": {"Node Type": "Hash Join", "Plans": [table]}, EXECUTOR_CPU: milliseconds}
        return replace(ok(), plan=plan)

    assert judged(by_arm(with_batches(1, 1.0), with_batches(2, 99.0)))[0] == (Agree(1),)
    assert finding(judged(by_arm(with_batches(2, 1.0), with_batches(2, 99.0)))[0])
