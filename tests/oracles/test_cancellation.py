"""Tests of the oracle `cancellation` on hand-made delays."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from oracles.cancellation import Cancellation
from oracles.explain.nodes import CANCEL_DELAY, EXECUTOR_CPU, EXPLAINED, UNINTERRUPTED
from oracles.model.observation import CaseObservation, Observation, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable, Verdict
from tests.oracles.observed import (
    LOST,
    case,
    error,
    finding,
    judged_with_runs,
    ok,
    on_second_step,
    query,
    seen,
    timeout,
)

CASE = case(query("SELECT 1"), query("SELECT 2"), samples=(EXPLAINED,))
CANCELED = "57014"


def executed(pending: float, milliseconds: float = 1.0, node: str = "Seq Scan") -> Observation:
    plan = {"Plan": {"Node Type": node}, UNINTERRUPTED: pending, EXECUTOR_CPU: milliseconds}
    return replace(ok(), plan=plan)


def disobeyed(delay: float) -> Observation:
    """Return a query that continued to its end after a cancel."""
    return replace(ok(), plan={"Plan": {"Node Type": "Seq Scan"}, CANCEL_DELAY: delay})


def judged(respond: Callable[[Run], CaseObservation]) -> tuple[tuple[Verdict, ...], list[Run]]:
    return judged_with_runs(Cancellation(), CASE, respond)


def by_arm(master: Observation, patched: Observation) -> Callable[[Run], CaseObservation]:
    return on_second_step(executed(0.1), master, patched)


def test_a_long_time_without_a_check_is_found_after_twenty_rounds() -> None:
    verdicts, runs = judged(by_arm(executed(0.5), executed(40.0)))
    found = finding(verdicts)
    assert found.summary == "step 1: CPU time without a check for interrupts: 40 ms, 80.00 times as much"
    assert found.origin == "CPU time without a check for interrupts under plan Seq Scan"
    rounds = [run for run in runs if run.repetition]
    assert [run.arm for run in rounds] == ["master", "patched"] * 20
    assert {run.instead for run in rounds} == {((0, "SELECT"),)}


@pytest.mark.parametrize(
    ("master", "patched"),
    [
        (executed(40.0), executed(0.5)),  # sooner
        (executed(0.1), executed(9.9)),  # a large factor of a short time
        (executed(100.0), executed(150.0)),
        (executed(0.1), executed(90.0, node="Sort")),  # another plan
    ],
)
def test_short_or_incomparable_times_are_not_measured_again(master: Observation, patched: Observation) -> None:
    verdicts, runs = judged(by_arm(master, patched))
    assert isinstance(verdicts[0], Agree)
    assert not any(run.repetition for run in runs)


def test_a_round_within_the_margin_refutes_it() -> None:
    def respond(run: Run) -> CaseObservation:
        late = run.arm == "patched" and run.repetition != 3
        return seen(executed(0.1), executed(30.0 if late else 0.2))

    verdicts, _ = judged(respond)
    assert verdicts == (Unstable("CPU time without a check for interrupts: not in all rounds"), Agree(2))


def test_a_lost_connection_is_inconclusive() -> None:
    lost = CaseObservation("", (executed(0.1), LOST))
    verdicts, _ = judged(lambda run: lost if run.arm == "patched" else seen(executed(0.1), executed(0.1)))
    assert verdicts == (Inconclusive("connection lost"), NotApplicable())


def is_canceled(run: Run) -> bool:
    return any(mode.name.startswith("cancel after") for mode in run.modes)


def obeyed(delay: float = 0.2) -> Observation:
    return replace(error(CANCELED), plan={CANCEL_DELAY: delay})


def canceled(master: Observation, patched: Observation) -> Callable[[Run], CaseObservation]:
    """Return a response with a long second query, which ends so if it is canceled."""
    return lambda run: seen(
        executed(0.1),
        executed(0.1, milliseconds=100.0) if not is_canceled(run) else {"master": master, "patched": patched}[run.arm],
    )


def test_the_longest_query_is_canceled_at_a_moment_of_its_text() -> None:
    verdicts, runs = judged(canceled(obeyed(), obeyed(5.0)))
    assert verdicts == (Agree(2),)
    master, patched = (run for run in runs if is_canceled(run))
    assert master == replace(patched, arm="master")
    assert master.instead == ((0, "SELECT"),)
    ((_, on), (name, milliseconds)) = master.modes[-1].settings
    assert (on, name) == ("on", "pgduel_probe.cancel_after")
    assert 10 <= int(milliseconds) <= 80


@pytest.mark.parametrize(
    "disobeying",
    [disobeyed(60.0), replace(error("22012"), plan={CANCEL_DELAY: 0.2})],
    ids=["it continues", "another error"],
)
def test_a_cancel_that_is_not_obeyed_three_times_is_found(disobeying: Observation) -> None:
    verdicts, runs = judged(canceled(obeyed(), disobeying))
    found = finding(verdicts)
    assert found.origin == "a cancel is not obeyed under plan Seq Scan"
    assert found.step == 1
    assert sum(is_canceled(run) for run in runs) == 6


@pytest.mark.parametrize(
    ("master", "patched"),
    [
        (executed(0.1), executed(0.1)),  # they ended before
        (obeyed(), executed(0.1)),
        (obeyed(), disobeyed(0.3)),  # the cancel came too late
        (disobeyed(60.0), disobeyed(60.0)),  # the query catches it
        (obeyed(), timeout()),
    ],
)
def test_legal_ends_of_a_canceled_query(master: Observation, patched: Observation) -> None:
    verdicts, runs = judged(canceled(master, patched))
    assert verdicts == (Agree(2),)
    assert sum(is_canceled(run) for run in runs) == 2


def test_a_cancel_that_is_not_obeyed_once_is_unstable() -> None:
    def respond(run: Run) -> CaseObservation:
        never = run.arm == "patched" and run.repetition == 0
        return canceled(obeyed(), disobeyed(60.0) if never else obeyed())(run)

    verdicts, _ = judged(respond)
    assert verdicts == (Unstable("a cancel is not obeyed: not each time"), Agree(2))


def test_short_queries_are_not_canceled() -> None:
    verdicts, runs = judged(by_arm(executed(0.1, 19.0), executed(0.1, 90.0)))
    assert verdicts == (Agree(2),)
    assert not any(map(is_canceled, runs))


def test_the_time_of_a_parallel_query_is_that_of_one_process() -> None:
    gather = {"Node Type": "Gather", "Workers Planned": 3, "Plans": [{"Node Type": "Seq Scan"}]}
    long = replace(ok(), plan={"Plan": gather, EXECUTOR_CPU: 79.0})
    _, runs = judged(by_arm(long, long))
    assert not any(map(is_canceled, runs))


def test_a_session_that_a_cancel_ends_is_inconclusive() -> None:
    def respond(run: Run) -> CaseObservation:
        response = canceled(obeyed(), LOST)(run)
        lost = is_canceled(run) and run.arm == "patched"
        return replace(response, residue=None) if lost else response

    verdicts, _ = judged(respond)
    assert verdicts == (Inconclusive("connection lost"), Agree(2))
