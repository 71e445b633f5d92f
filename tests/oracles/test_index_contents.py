"""Tests of the oracle `index_contents` on hand-made results of amcheck."""

from collections.abc import Callable

import pytest

from oracles.index_contents import CHECKED, COMPLETE, IndexContents
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable, Verdict
from tests.oracles.observed import LOST, case, finding, judged, ok, query, seen

CASE = case(query(), query(), samples=(CHECKED,))
LACKS = 'error XX001 heap tuple (0,5) from table "t" lacks matching index tuple within index "t_i_idx"'
ELSEWHERE = LACKS.replace("(0,5)", "(7,1)")


def verdicts(respond: Callable[[Run], str]) -> tuple[Verdict, ...]:
    def observed(run: Run) -> CaseObservation:
        return seen(ok("1"), ok("2"), digests={"index t_i_idx": respond(run), "t": "5 77"})

    return judged(IndexContents(), CASE, observed)


def by_arm(reference: str, suspect: str, again: str | None = None) -> tuple[Verdict, ...]:
    return verdicts(
        lambda run: reference if run.arm == "master" else suspect if not run.repetition else again or suspect
    )


def test_complete_indexes_agree() -> None:
    assert by_arm(COMPLETE, COMPLETE) == (Agree(2),)


@pytest.mark.parametrize(("reference", "suspect"), [(COMPLETE, LACKS), (LACKS, COMPLETE)])
def test_an_index_without_a_row_is_a_finding(reference: str, suspect: str) -> None:
    found = finding(by_arm(reference, suspect))
    assert (found.arms, found.step) == (("master", "patched"), None)
    assert found.origin == "index contents: heap tuple ... from table ... lacks matching index tuple within index ..."
    assert "t_i_idx" in found.summary


def test_the_place_of_the_row_may_differ_in_the_repetition() -> None:
    assert finding(by_arm(COMPLETE, LACKS, ELSEWHERE))


def test_an_index_that_is_corrupt_once_is_unstable() -> None:
    assert isinstance(by_arm(COMPLETE, LACKS, COMPLETE)[0], Unstable)


@pytest.mark.parametrize(
    ("reference", "suspect", "reason"),
    [
        (LACKS, ELSEWHERE, "an index is corrupt on both arms"),
        (COMPLETE, "error 57014 canceling statement due to statement timeout", "an index cannot be checked"),
        ("error 22012 division by zero", "error 22012 division by zero", "an index cannot be checked"),
    ],
)
def test_what_amcheck_does_not_decide_is_inconclusive(reference: str, suspect: str, reason: str) -> None:
    assert Inconclusive(reason) in by_arm(reference, suspect)


def test_a_lost_session_is_inconclusive() -> None:
    lost = CaseObservation("", (ok("1"), LOST))
    assert judged(IndexContents(), CASE, lambda run: lost) == (Inconclusive("connection lost"),)


def test_cases_without_indexes_are_not_judged() -> None:
    assert judged(IndexContents(), CASE, lambda run: seen(ok("1"), ok("2"))) == (NotApplicable(),)
