"""Tests of the oracle `hang`: statements that end on one arm only."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fuzz.execution.judging import judge_case
from oracles.hang import TIMEOUT_FACTOR, Hang
from oracles.model.case import Step
from oracles.model.finding import Finding
from oracles.model.observation import CaseObservation, Observation, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable
from tests.oracles.observed import (
    LOST,
    SKIPPED,
    StubExecutor,
    assigned,
    case,
    error,
    finding,
    judged,
    ok,
    query,
    seen,
    timeout,
    variant,
)

CASE = case(query(), query(), query())
SOUND = seen(ok("1"), ok("2"), ok("3"))
CUT = seen(ok("1"), timeout(), ok("3"))
HUNG = replace(seen(ok("1"), timeout(), SKIPPED), hang=("client backend, active, IPC: HashBuildHashInner",))

Respond = Callable[[Run], CaseObservation]


def suspect(normal: CaseObservation, longer: CaseObservation, again: CaseObservation | None = None) -> Respond:
    def respond(run: Run) -> CaseObservation:
        if run.arm == "master" or run.plannings:
            return SOUND
        if not run.timeout_factor:
            return normal
        return again if again and variant(run) else longer

    return respond


def test_a_hang_of_the_suspect_is_a_finding_with_its_waits() -> None:
    found = finding(judged(Hang(), CASE, suspect(CUT, HUNG)))
    assert (found.arms, found.step) == (("master", "patched"), 1)
    assert "HashBuildHashInner" in found.actual


@pytest.mark.parametrize("again", [None, HUNG])
def test_a_statement_that_ends_under_the_longer_limit_is_inconclusive(again: CaseObservation | None) -> None:
    first, second = (SOUND, again) if again is None else (HUNG, SOUND)
    verdicts = judged(Hang(), CASE, suspect(CUT, first, second))
    assert verdicts == (Agree(1), Inconclusive("a statement ends under a longer limit only"))


def test_a_hang_of_the_reference_too_is_no_finding() -> None:
    def respond(run: Run) -> CaseObservation:
        return HUNG if run.timeout_factor else CUT if run.arm == "patched" else SOUND

    (*_, last) = judged(Hang(), CASE, respond)
    assert isinstance(last, Inconclusive)


def test_a_hang_after_a_timeout_of_both_arms_is_found() -> None:
    def after_timeout(observed: CaseObservation) -> CaseObservation:
        return replace(observed, steps=(timeout(), *observed.steps[1:]))

    sound, cut, hung = map(after_timeout, (SOUND, CUT, HUNG))

    def respond(run: Run) -> CaseObservation:
        return sound if run.arm == "master" else hung if run.timeout_factor else cut

    assert finding(judged(Hang(), CASE, respond)).step == 1


@pytest.mark.parametrize("broken", [timeout(), LOST])
def test_after_a_command_that_did_not_end_the_arms_are_not_compared(broken: Observation) -> None:
    ours, theirs = seen(broken, ok("2"), ok("3")), seen(broken, timeout(), ok("3"))
    changing = case(Step("UPDATE t SET n = 1"), query(), query())
    assert judged(Hang(), changing, lambda run: ours if run.arm == "master" else theirs) == (NotApplicable(),)


def test_an_error_on_the_reference_is_an_end_too() -> None:
    def respond(run: Run) -> CaseObservation:
        if run.arm == "master":
            return seen(ok("1"), error("22012"), ok("3"))
        return HUNG if run.timeout_factor else CUT

    assert isinstance(finding(judged(Hang(), CASE, respond)), Finding)


def test_no_runs_are_requested_if_all_statements_end() -> None:
    stub = StubExecutor(lambda run: SOUND)
    assert judge_case(stub, assigned((Hang(),), ("master", "patched")), CASE).verdicts == (("hang", Agree(3)),)
    assert [run.timeout_factor for run in stub.requested] == [0, 0]


def test_the_client_waits_in_place_of_the_server() -> None:
    stub = StubExecutor(suspect(CUT, HUNG))
    judge_case(stub, assigned((Hang(),), ("master", "patched")), CASE)
    assert {run.timeout_factor for run in stub.requested if not run.plannings} == {0, TIMEOUT_FACTOR}
