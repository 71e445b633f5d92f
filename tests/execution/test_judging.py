"""Tests of `judge_case`: runs, observations, verdicts, further runs on request, and the votes of arms."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import pytest

from fuzz.campaign.canaries import FaultyExecutor
from fuzz.errors import ServerError
from fuzz.execution.exchanges import Abandoned
from fuzz.execution.judging import JudgedCase, judge_case, judge_despite_errors, with_votes
from oracles.crash import Crash
from oracles.model.case import Case
from oracles.model.finding import Finding, Vote
from oracles.model.mode import Mode
from oracles.model.observation import CaseObservation, Outcome, Run
from oracles.model.oracle import Agree, Canary, Inconclusive, More, Observations, Oracle, Unstable, Verdict
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


class OwnRuns(OneMore):
    """An oracle whose verdicts do not depend on runs of others."""

    judges_own_runs: ClassVar[bool] = True


class Repeating(OneMore):
    """An oracle that requests a run that it already has."""

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> More:
        return More((Run(arms[0], case.modes),))


class Failing(OneMore):
    """An oracle that raises an error."""

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        if self.judged:
            self.judged.append(len(observations))
            return (Agree(1),)
        self.judged.append(len(observations))
        raise KeyError("Plan Rows")


class RequestsNothing(OneMore):
    """An oracle that fails before the first run."""

    def runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        raise RecursionError


class Unreadable(OneMore):
    """An oracle that returns no verdicts."""

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        return None  # type: ignore[return-value]


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


def test_oracles_judge_even_if_all_their_runs_are_given() -> None:
    stub = executor()
    judged = judge_case(stub, assigned((OneMore(1),), ARMS[:1]), CASE, {Run(ARMS[0], CASE.modes): seen(ok("1"))})
    assert (judged.verdicts, judged.complete) == ((("one_more", Agree(1)),), True)
    assert not stub.requested


def test_every_oracle_judges_all_observations_in_the_end() -> None:
    first = OneMore(1)
    judge_case(executor(), assigned((first, OneMore(3)), ARMS), CASE)
    assert first.judged == [2, 3, 4]


def test_an_oracle_that_judges_its_own_runs_does_not_judge_again_after_its_verdicts() -> None:
    own, other = OwnRuns(2), OneMore(4)
    judged = judge_case(executor(), assigned((own, other), ARMS), CASE)
    assert judged.verdicts == (("one_more", Agree(2)), ("one_more", Agree(4)))
    assert (own.judged, other.judged) == ([2, 3], [2, 3, 4, 5])


def test_an_oracle_that_requests_a_run_that_it_has_is_an_error() -> None:
    with pytest.raises(ValueError, match="one_more requests runs that it already has"):
        judge_case(executor(), assigned((Repeating(1),), ARMS), CASE)


@pytest.mark.parametrize("failing", [Failing(1), Repeating(1), RequestsNothing(1), Unreadable(1)])
def test_an_oracle_that_fails_leaves_the_verdicts_of_others(failing: OneMore) -> None:
    judged = judge_despite_errors(executor(), assigned((failing, OneMore(3)), ARMS), CASE)
    assert (judged.verdicts, judged.complete) == ((("one_more", Agree(3)),), True)
    (error,) = judged.errors
    with pytest.raises(type(error)):
        judge_case(executor(), assigned((type(failing)(1), OneMore(3)), ARMS), CASE)


def test_an_oracle_that_failed_does_not_judge_again() -> None:
    failing = Failing(1)
    judge_despite_errors(executor(), assigned((failing, OneMore(3)), ARMS), CASE)
    assert failing.judged == [2]


def test_verdicts_before_an_outage_are_kept() -> None:
    def respond(run: Run) -> CaseObservation:
        if run.modes:
            raise ServerError("the server of arm patched is down")
        return replace(seen(ok("1")), crash="PANIC:  it is full" if run.arm == "patched" else None)

    judged = judge_despite_errors(StubExecutor(respond), assigned((Crash(), OneMore(3)), ARMS), CASE)
    (found,) = judged.findings
    assert (found.arms, found.origin, judged.complete) == (ARMS, "PANIC it is full", False)
    assert str(judged.outage) == "the server of arm patched is down"
    assert judge_case(StubExecutor(respond), assigned((Crash(), OneMore(3)), ARMS), CASE).findings == (found,)
    with pytest.raises(ServerError):
        judge_case(StubExecutor(respond), assigned((OneMore(3),), ARMS), CASE)


def test_a_crash_is_judged_although_the_other_arm_cannot_repeat_its_run() -> None:
    """The crash is in a run that one arm has executed, and then its server is down."""
    crashed = replace(seen(ok("1")), crash="PANIC:  it is full")

    def respond(run: Run) -> CaseObservation:
        if run.arm == ARMS[1] and run.modes:
            raise ServerError("the server of arm patched is down")
        return crashed if run.modes else seen(ok("1"))

    judged = judge_despite_errors(StubExecutor(respond), assigned((Crash(), OneMore(2)), ARMS), CASE)
    (found,) = judged.findings
    assert (found.arms, found.origin) == ((ARMS[1], ARMS[0]), "PANIC it is full")
    assert str(judged.outage) == "the server of arm patched is down"
    assert all(seen.steps[0].outcome is not Outcome.SKIPPED for seen in judged.observations.values())


def test_a_crash_that_was_observed_before_judging_is_judged_although_its_server_is_down() -> None:
    def respond(run: Run) -> CaseObservation:
        raise ServerError(f"the server of arm {run.arm} is down")

    explained = Run(ARMS[1], CASE.modes, explain=True)
    known = {explained: replace(seen(ok("1")), crash="PANIC:  it is full")}
    judged = judge_despite_errors(StubExecutor(respond), assigned((Crash(), OneMore(2)), ARMS), CASE, known)
    (found,) = judged.findings
    assert (found.arms, found.origin) == (ARMS, "PANIC it is full")


def test_statements_compared_by_several_oracles_count_once() -> None:
    verdicts = (("a", Agree(3)), ("a", Agree(4)), ("a", Inconclusive("timeout")), ("b", Agree(5)))
    assert JudgedCase(verdicts, {}).statements == 7


def test_oracles_do_not_see_the_planted_fault() -> None:
    stub = executor()
    runs = [Run(arm, (), repeats) for arm in ARMS for repeats in (1, 6)]
    observed = FaultyExecutor(stub, "patched", "drop_row").observe(CASE, runs)
    assert list(observed) == runs
    assert [run for run in stub.requested if run.fault] == [replace(run, fault="drop_row") for run in runs[2:]]


THREE = ("master", "patched", "upstream")


def finding(suspect: str, *, step: int = 3, actual: str = "1 row") -> Finding:
    return Finding("result", ("master", suspect), "rows", step, "rows differ", "2 rows", actual)


def votes(*verdicts: Verdict, arms: tuple[str, ...] = THREE) -> list[Vote | None]:
    return [each.vote for each in with_votes(verdicts, arms) if isinstance(each, Finding)]


def test_an_arm_that_alone_differs_is_the_suspect() -> None:
    assert votes(finding("patched"), Agree(7)) == [Vote("patched", ("master", "upstream"))]


def test_the_reference_is_the_suspect_if_all_others_agree() -> None:
    expected = Vote("master", ("patched", "upstream"))
    assert votes(finding("patched"), finding("upstream")) == [expected, expected]
    assert str(expected) == "master, as patched and upstream agree"


def test_there_is_no_majority_if_all_arms_differ() -> None:
    assert votes(finding("patched"), finding("upstream", actual="3 rows")) == [None, None]


def test_there_is_no_majority_of_two() -> None:
    assert votes(finding("patched"), arms=("master", "patched")) == [None]


def test_each_step_has_its_own_vote() -> None:
    voted = votes(finding("patched"), finding("upstream", step=5))
    assert voted == [Vote("patched", ("master", "upstream")), Vote("upstream", ("master", "patched"))]


def test_an_arm_with_an_unstable_verdict_does_not_vote() -> None:
    assert votes(finding("patched"), Unstable("plans")) == [None]


def test_a_fault_of_all_arms_has_no_suspect() -> None:
    shared = Finding("crash", ("master", "master"), "assert", 3, "crashed (as all arms do)", "", "")
    assert votes(shared) == [None]
