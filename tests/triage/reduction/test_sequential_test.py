"""Tests of the sequential test: occasional findings are neither lost nor replaced, and others need no more runs."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from fuzz.triage.reduction.passes.drop import drop_steps
from fuzz.triage.reduction.reducer import reduce
from fuzz.triage.sequential_test import CERTAIN_TRIES, ENOUGH_SHOWN, RATE_FACTOR, RISK, SequentialTest
from oracles.model.case import Case, Step

CASE = Case("g", (), tuple(Step(f"SELECT {number}") for number in range(40)))
NEEDED = {CASE.steps[number] for number in (3, 17, 31)}
TRIES = 1000
FINDINGS = 20


def at_a_rate(rates: Callable[[Case], float], seed: int) -> Callable[[Case], bool]:
    """Return a test that succeeds at a rate that depends on the case."""
    rng = Random(seed)
    return lambda case: rng.random() < rates(case)


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.9])
def test_wrong_decisions_are_as_rare_as_stated(rate: float) -> None:
    same, too_low = replace(CASE, generator="same"), replace(CASE, generator="too_low")
    rates = {CASE: rate, same: rate, too_low: rate / RATE_FACTOR / 2}
    test = SequentialTest(at_a_rate(rates.__getitem__, 1))
    while not test.depends_on_chance:
        measured = test.measure(CASE)
    assert measured.shown >= ENOUGH_SHOWN
    test = SequentialTest(at_a_rate(rates.__getitem__, 2))
    test._rate = rate  # the measured rate varies, too
    assert sum(test.shows(same) for _ in range(TRIES)) >= TRIES * (1 - 1.2 * RISK)
    assert sum(test.shows(too_low) for _ in range(TRIES)) <= TRIES * RISK


@pytest.mark.parametrize("seed", range(FINDINGS))
def test_a_finding_that_occurs_in_half_of_the_tries_is_reduced(seed: int) -> None:
    left = reduce(
        CASE,
        at_a_rate(lambda case: 0.5 * (set(case.steps) >= NEEDED), seed),
        seconds=60,
        replay="",
        passes=[drop_steps],
    )
    assert set(left.case.steps) >= NEEDED
    assert len(left.case.steps) <= 10
    assert left.occurrence.shown > 0


@pytest.mark.parametrize("seed", range(FINDINGS))
def test_an_occasional_finding_is_not_replaced_by_a_rare_one(seed: int) -> None:
    """Without one of the needed statements, the finding occurs in one of fifty tries."""

    def rate(case: Case) -> float:
        needed = len(NEEDED & set(case.steps))
        return 0.5 if needed == len(NEEDED) else 0.02 * (needed > 0)

    left = reduce(CASE, at_a_rate(rate, seed), seconds=60, replay="", passes=[drop_steps])
    assert set(left.case.steps) >= NEEDED


def test_a_finding_that_always_occurred_at_first_may_become_occasional() -> None:
    tried: list[Case] = []

    def varies_when_small(case: Case) -> bool:
        tried.append(case)
        return set(case.steps) >= NEEDED and (len(case.steps) > 10 or len(tried) % 3 > 0)

    left = reduce(CASE, varies_when_small, seconds=60, replay="", passes=[drop_steps])
    assert set(left.case.steps) >= NEEDED
    assert 0 < left.occurrence.shown < left.occurrence.runs


def test_a_case_that_shows_the_finding_only_once_is_taken_back() -> None:
    lucky: list[Case] = []

    def once_when_small(case: Case) -> bool:
        if set(case.steps) >= NEEDED:
            return True
        lucky.append(case)
        return len(lucky) == 1

    left = reduce(CASE, once_when_small, seconds=60, replay="", passes=[drop_steps])
    assert set(left.case.steps) == NEEDED
    assert left.occurrence.always


def test_cases_that_always_show_the_finding_are_tested_once() -> None:
    tried: list[Case] = []

    def always(case: Case) -> bool:
        tried.append(case)
        return set(case.steps) >= NEEDED

    reduce(CASE, always, seconds=60, replay="", passes=[drop_steps])
    assert len(tried) == len(set(tried)) + 2 * (CERTAIN_TRIES - 1) + 1


def test_measurement_ends_at_its_time_limit_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finding that occurs once in ten tries, of a second each, is counted, and is not lost at the time limit."""
    clock = itertools.count()
    monkeypatch.setattr("fuzz.triage.sequential_test.time.monotonic", lambda: next(clock))
    results = iter([*9 * [False], True, *99 * [False]])
    test = SequentialTest(lambda case: next(results))
    assert test.measure(CASE, seconds=0).runs == CERTAIN_TRIES  # the first case may lack the finding
    test._rate = 0.1
    measured = test.measure(CASE, seconds=3)
    assert (measured.shown, measured.runs) == (1, 10 - CERTAIN_TRIES)
    assert test.measure(CASE, seconds=3).runs == 3 * 3 + CERTAIN_TRIES


def test_other_tests_end_at_their_time_limit() -> None:
    tried: list[Case] = []

    def never(case: Case) -> bool:
        tried.append(case)
        return False

    test = SequentialTest(never)
    test._rate = 0.5
    assert not test.shows(CASE, seconds=0)
    test.remeasure(CASE, seconds=0)
    assert len(tried) <= 3
    assert test.depends_on_chance
