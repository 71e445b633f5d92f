"""Statements that end on one arm only."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fuzz.execution.judging import judge_case
from oracles.hang import PATIENCE, Hang
from oracles.model.finding import Finding
from oracles.model.observation import CaseObservation, Observation, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable
from tests.oracles.observed import (
    LOST,
    SKIPPED,
    ByHand,
    case,
    error,
    finding,
    judged,
    ok,
    query,
    seated,
    seen,
    timeout,
    way,
)

CASE = case(query(), query(), query())
SOUND = seen(ok("1"), ok("2"), ok("3"))
CUT = seen(ok("1"), timeout(), ok("3"))
HUNG = replace(seen(ok("1"), timeout(), SKIPPED), hang=("client backend, active, IPC: HashBuildHashInner",))

Respond = Callable[[Run], CaseObservation]


def suspect(normal: CaseObservation, patient: CaseObservation, again: CaseObservation | None = None) -> Respond:
    def respond(run: Run) -> CaseObservation:
        if run.arm == "master" or run.plannings:
            return SOUND
        if not run.patience:
            return normal
        return again if again and way(run) else patient

    return respond


def test_what_never_ends_on_the_suspect_only_is_a_finding_with_its_waits() -> None:
    found = finding(judged(Hang(), CASE, suspect(CUT, HUNG)))
    assert (found.arms, found.step) == (("master", "patched"), 1)
    assert "HashBuildHashInner" in found.actual


@pytest.mark.parametrize("again", [None, HUNG])
def test_what_ends_under_the_longer_limit_is_a_doubt(again: CaseObservation | None) -> None:
    first, second = (SOUND, again) if again is None else (HUNG, SOUND)
    verdicts = judged(Hang(), CASE, suspect(CUT, first, second))
    assert verdicts == (Agree(1), Inconclusive("a statement ends under a longer limit only"))


def test_what_does_not_end_on_the_reference_either_is_no_finding() -> None:
    def respond(run: Run) -> CaseObservation:
        return HUNG if run.patience else CUT if run.arm == "patched" else SOUND

    (*_, last) = judged(Hang(), CASE, respond)
    assert isinstance(last, Inconclusive)


@pytest.mark.parametrize("broken", [timeout(), LOST])
def test_after_a_step_that_did_not_end_the_arms_are_not_compared(broken: Observation) -> None:
    ours, theirs = seen(broken, ok("2"), ok("3")), seen(broken, timeout(), ok("3"))
    assert judged(Hang(), CASE, lambda run: ours if run.arm == "master" else theirs) == (NotApplicable(),)


def test_an_error_on_the_reference_is_an_end_too() -> None:
    def respond(run: Run) -> CaseObservation:
        if run.arm == "master":
            return seen(ok("1"), error("22012"), ok("3"))
        return HUNG if run.patience else CUT

    assert isinstance(finding(judged(Hang(), CASE, respond)), Finding)


def test_nothing_is_asked_where_all_statements_end() -> None:
    by_hand = ByHand(lambda run: SOUND)
    assert judge_case(by_hand, seated((Hang(),), ("master", "patched")), CASE).verdicts == (("hang", Agree(3)),)
    assert [run.patience for run in by_hand.asked] == [0, 0]


def test_the_client_waits_in_place_of_the_server() -> None:
    by_hand = ByHand(suspect(CUT, HUNG))
    judge_case(by_hand, seated((Hang(),), ("master", "patched")), CASE)
    assert {run.patience for run in by_hand.asked if not run.plannings} == {0, PATIENCE}
