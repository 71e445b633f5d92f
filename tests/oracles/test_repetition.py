"""Tests of the oracle `repetition` on hand-made observations of six repetitions."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from oracles.framework.shared_runs import REPEATED
from oracles.model.case import Step
from oracles.model.observation import CaseObservation, Message, Observation, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable, Verdict
from oracles.repetition import Repetition
from tests.oracles.observed import (
    LOST,
    case,
    error,
    finding,
    judged,
    judged_with_runs,
    ok,
    query,
    seen,
    timeout,
    variant,
)

CASE = case(Step("CREATE TABLE t (x int)"), query("SELECT x FROM t"), samples=(REPEATED,))
SOUND = [ok("1")] * 6


def repeated(answers: Sequence[Observation]) -> CaseObservation:
    """Return the observation of repetitions whose query has these answers."""
    *earlier, last = ((ok(tag="CREATE TABLE"), answer) for answer in answers)
    return replace(seen(*last, digests={"t": "1 1"}), earlier=tuple(earlier))


def with_third(answer: Observation) -> CaseObservation:
    return repeated([*SOUND[:2], answer, *SOUND[3:]])


def duel(master: Callable[[Run], CaseObservation], patched: Callable[[Run], CaseObservation]) -> tuple[Verdict, ...]:
    return judged(Repetition(), CASE, lambda run: (master if run.arm == "master" else patched)(run))


def test_other_rows_of_a_repetition_are_a_finding() -> None:
    found = finding(duel(lambda _: repeated(SOUND), lambda _: with_third(ok("2"))))
    assert (found.arms, found.step, found.origin) == (("master", "patched"), 1, "rows, repeated: SELECT")
    assert found.summary == "in repetition 3 of the case: step 1: 1 row missing, 1 surplus, of 1"


def test_an_error_of_a_repetition_is_a_finding() -> None:
    found = finding(duel(lambda _: repeated(SOUND), lambda _: with_third(error("42P01"))))
    assert found.origin == "outcome, repeated: ok / 42P01"


def test_other_contents_after_the_last_repetition_are_a_finding() -> None:
    other = replace(repeated(SOUND), digests=(("t", "2 2"),))
    found = finding(duel(lambda _: repeated(SOUND), lambda _: other))
    assert (found.origin, found.step) == ("number of rows stored, repeated", None)


def test_equal_repetitions_agree_even_if_they_differ_from_each_other() -> None:
    counted = repeated([ok(str(number)) for number in range(6)])
    assert duel(lambda _: counted, lambda _: counted) == (Agree(2),)


def test_a_difference_of_each_repetition_is_left_to_another_oracle() -> None:
    assert duel(lambda _: repeated(SOUND), lambda _: repeated([ok("2")] * 6)) == (Agree(2),)


def test_a_schema_that_cannot_be_dropped_after_a_repetition_is_a_finding() -> None:
    cut = replace(repeated(SOUND[:3]), closing=(Message("ERROR", "2BP01", "it failed"),))
    found = finding(duel(lambda _: repeated(SOUND), lambda _: cut))
    assert (found.origin, found.step) == ("errors at the end, repeated", None)
    assert found.summary.startswith("in repetition 3 of the case: after the case")


def test_a_schema_that_no_arm_can_drop_leaves_the_repetitions_until_then() -> None:
    cut = replace(repeated(SOUND[:1]), closing=(Message("ERROR", "P0001", "no"),))
    assert duel(lambda _: cut, lambda _: cut) == (Agree(2),)


@pytest.mark.parametrize("varied", ["again 1", "workers"])
def test_a_reference_that_differs_from_itself_is_unstable(varied: str) -> None:
    verdicts = duel(lambda run: with_third(ok("3" if variant(run) == varied else "1")), lambda _: with_third(ok("2")))
    assert verdicts == (Unstable("rows of a repetition: master differs from itself"),)


def test_a_difference_that_does_not_occur_again_is_unstable() -> None:
    verdicts = duel(lambda _: repeated(SOUND), lambda run: with_third(ok("1" if variant(run) else "2")))
    assert verdicts == (Unstable("rows of a repetition: differed once"),)


@pytest.mark.parametrize(("answer", "reason"), [(timeout(), "timeout"), (LOST, "connection lost")])
def test_repetitions_that_are_cut_off_are_inconclusive(answer: Observation, reason: str) -> None:
    cut = replace(repeated([*SOUND[:2], LOST]), residue=None) if answer is LOST else with_third(answer)
    assert duel(lambda _: repeated(SOUND), lambda _: cut) == (Inconclusive(reason),)


def test_other_cases_are_not_repeated() -> None:
    plain = replace(CASE, samples=(), sampled_by_content=False)
    verdicts, runs = judged_with_runs(Repetition(), plain, lambda _: seen(ok(), ok("1")))
    assert verdicts == (NotApplicable(),)
    assert {run.repeats for run in runs} == {1}
