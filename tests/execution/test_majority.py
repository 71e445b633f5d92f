"""Tests of `with_votes`: the arm that the majority outvotes."""

from fuzz.execution.judging import with_votes
from oracles.model.finding import Finding, Vote
from oracles.model.oracle import Agree, Unstable, Verdict

ARMS = ("master", "patched", "upstream")


def finding(suspect: str, *, step: int = 3, actual: str = "1 row") -> Finding:
    return Finding("result", ("master", suspect), "rows", step, "rows differ", "2 rows", actual)


def votes(*verdicts: Verdict, arms: tuple[str, ...] = ARMS) -> list[Vote | None]:
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
