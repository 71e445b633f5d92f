"""Tests of property tests without servers: profiles of Hypothesis, and examples that prove too little."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings, target
from hypothesis import strategies as st

from fuzz.campaign.counters import Counters
from fuzz.engines.property_based import profile
from fuzz.execution.judging import JudgedCase
from oracles.model.observation import CaseObservation, Observation, Outcome, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable, Verdict
from tests.engines.examples import ARMS, count, explained_run, missing_proof
from tests.oracles.observed import case, ok, query, seen

LARGEST = 1 << 40
FEW = 100  # examples that show the same as all of a campaign


@pytest.fixture
def campaign(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HYPOTHESIS_PROFILE", "campaign")
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path))


def drawn(part: str = "", *, limit: int = LARGEST, score: Callable[[int], int] = lambda number: 0) -> list[int]:
    """Return the numbers of a test's examples, which fail above `limit` and end the test then."""
    numbers: list[int] = []

    @settings(profile(part), max_examples=min(profile().max_examples, FEW))
    @given(number=st.integers(0, LARGEST))
    def small(number: int) -> None:
        numbers.append(number)
        target(score(number))
        assert number <= limit

    with suppress(AssertionError):
        small()
    return numbers


@pytest.mark.usefixtures("campaign")
def test_a_campaign_begins_with_the_failing_example_of_the_last_one() -> None:
    assert drawn("one", limit=1000)[0] == 0
    assert drawn("one", limit=1000)[0] == 1001
    assert drawn("other", limit=1000)[0] == 0


@pytest.mark.usefixtures("campaign")
def test_each_campaign_has_new_examples() -> None:
    assert drawn("one") != drawn("other")


def test_examples_are_the_same_each_time_whatever_their_scores() -> None:
    numbers = drawn()
    assert len(numbers) == 40
    assert drawn(score=lambda number: -number) == numbers


@pytest.mark.usefixtures("campaign")
def test_a_campaign_has_all_phases() -> None:
    assert set(profile().phases) == set(Phase)


def counted(*verdicts: tuple[str, Verdict], cases: int = 1) -> Counters:
    """Return the counters of so many cases with these verdicts."""
    counters, example = Counters(), case(query())
    observed = {Run(ARMS[0], ()): seen(ok("1")), explained_run(example): seen(_planned("Seq Scan"))}
    for _ in range(cases):
        count(counters, example, JudgedCase(verdicts, observed))
    return counters


def _planned(*nodes: str) -> Observation:
    """Return a query whose plan has these nodes, the first one above all others."""
    top, *others = nodes
    plan = {"Node Type": top, "Plans": [{"Node Type": other} for other in others]}
    return Observation(Outcome.OK, plan={"Plan": plan})


CRASH = ("crash", Agree(1))


@pytest.mark.parametrize(
    "verdicts",
    [
        (("result", Inconclusive("a statement reached the time limit")), CRASH),
        (("result", Unstable("the reference differs from itself")), CRASH),
        (("result", NotApplicable()), CRASH),
        (CRASH,),
    ],
)
def test_examples_without_compared_rows_prove_too_little(
    verdicts: tuple[tuple[str, Verdict], ...],
) -> None:
    assert missing_proof(counted(*verdicts)) == ("result agreed on no example",)


def test_one_compared_example_is_enough_unless_there_are_many() -> None:
    counters = counted(("result", Inconclusive("time limit")), CRASH, cases=9)
    counters.add(counted(("result", Agree(1)), CRASH))
    assert missing_proof(counters) == ()
    counters.add(counted(("result", Inconclusive("time limit")), CRASH, cases=10))
    assert missing_proof(counters) == ("result on by_hand: 95% of the statements were inconclusive",)


def test_examples_whose_statements_fail_prove_too_little() -> None:
    counters = counted(("result", Agree(1)), cases=40)
    assert missing_proof(counters) == ()
    counters.valid = Counter()
    assert missing_proof(counters) == ("by_hand: only 0.0% of the statements succeeded, at least 97% should",)


def test_new_plan_shapes_of_an_example_are_counted_once() -> None:
    example = case(query(), query(), query())
    counters = Counters()

    def new(*plans: Observation) -> int:
        observed = {Run(ARMS[0], ()): seen(*3 * [ok("1")]), explained_run(example): CaseObservation("", plans)}
        return count(counters, example, JudgedCase((("result", Agree(3)),), observed))

    scan, sort = _planned("Seq Scan"), _planned("Sort", "Seq Scan")
    assert new(scan, scan, sort) == 2
    assert new(scan, _planned("Limit", "Seq Scan"), sort) == 1
    assert new(sort, sort, sort) == 0
