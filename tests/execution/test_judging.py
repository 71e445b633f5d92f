"""Tests of `judge_case`: runs, observations, verdicts, and further runs on request."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import pytest

from fuzz.campaign.canaries import FaultyExecutor
from fuzz.execution.exchanges import Abandoned
from fuzz.execution.judging import JudgedCase, judge_case
from oracles.model.case import Case
from oracles.model.mode import Mode
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Agree, Canary, Inconclusive, More, Observations, Oracle, Verdict
from tests.oracles.observed import ARMS, StubExecutor, assigned, case, ok, query, seen

CASE = case(query())


class OneMore(Oracle):
    """An oracle that requests one more run at a time, up to a number."""

    name: ClassVar[str] = "one_more"
    canaries: ClassVar[tuple[Canary, ...]] = ()

    def __init__(self, enough: int) -> None:
        self.enough = enough
        self.judged: list[int] = []

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        self.judged.append(len(observations))
        mine = sum(run.arm == arms[0] for run in observations)
        return More((Run(arms[0], (Mode(f"look {mine}"),)),)) if mine < self.enough else (Agree(mine),)


class Repeating(OneMore):
    """An oracle that requests a run that it already has."""

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> More:
        return More((Run(arms[0], case.modes),))


def executor() -> StubExecutor:
    return StubExecutor(lambda run: seen(ok("1")))


def test_runs_continue_until_no_oracle_requests_more() -> None:
    stub = executor()
    judged = judge_case(stub, assigned((OneMore(1), OneMore(3)), ARMS), CASE)
    assert judged.verdicts == (("one_more", Agree(3)), ("one_more", Agree(3)))
    assert set(judged.observations) == set(stub.requested)


def test_verdicts_before_the_end_of_an_abandoned_case_are_kept() -> None:
    def respond(run: Run) -> CaseObservation:
        if run.modes:
            raise Abandoned
        return seen(ok("1"))

    judged = judge_case(StubExecutor(respond), assigned((OneMore(1), OneMore(3)), ARMS), CASE)
    assert (judged.verdicts, judged.complete) == ((("one_more", Agree(1)),), False)
    assert judge_case(executor(), assigned((OneMore(3),), ARMS), CASE).complete


def test_equal_runs_are_executed_once() -> None:
    stub = executor()
    judge_case(stub, assigned((OneMore(3), OneMore(3)), ARMS), CASE)
    assert len(stub.requested) == len(set(stub.requested)) == 4


def test_given_observations_are_judged_and_not_repeated() -> None:
    observations = {run: seen(ok("1")) for run in (Run(ARMS[0], CASE.modes), Run(ARMS[0], (Mode("look 1"),)))}
    stub = executor()
    judged = judge_case(stub, assigned((OneMore(3),), ARMS), CASE, observations)
    assert judged.verdicts == (("one_more", Agree(3)),)
    assert set(stub.requested) == {Run(ARMS[1], CASE.modes), Run(ARMS[0], (Mode("look 2"),))}


def test_every_oracle_judges_all_observations_in_the_end() -> None:
    first = OneMore(1)
    judge_case(executor(), assigned((first, OneMore(3)), ARMS), CASE)
    assert first.judged == [2, 3, 4]


def test_an_oracle_that_requests_a_run_that_it_has_is_an_error() -> None:
    with pytest.raises(ValueError, match="one_more requests runs that it already has"):
        judge_case(executor(), assigned((Repeating(1),), ARMS), CASE)


def test_statements_compared_by_several_oracles_count_once() -> None:
    verdicts = (("a", Agree(3)), ("a", Agree(4)), ("a", Inconclusive("timeout")), ("b", Agree(5)))
    assert JudgedCase(verdicts, {}).statements == 7


def test_oracles_do_not_see_the_planted_fault() -> None:
    stub = executor()
    runs = [Run(arm, (), repeats) for arm in ARMS for repeats in (1, 6)]
    observed = FaultyExecutor(stub, "patched", "drop_row").observe(CASE, runs)
    assert list(observed) == runs
    assert [run for run in stub.requested if run.fault] == [replace(run, fault="drop_row") for run in runs[2:]]
