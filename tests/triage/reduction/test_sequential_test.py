"""What shows now and then is neither lost nor taken for something else, and what always shows costs nothing more."""

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
TRIALS = 1000
FINDINGS = 20


def at_a_rate(rates: Callable[[Case], float], seed: int) -> Callable[[Case], bool]:
    """Return a test that succeeds at a rate that depends on the case."""
    rng = Random(seed)
    return lambda case: rng.random() < rates(case)


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.9])
def test_a_step_is_lost_or_taken_in_error_as_seldom_as_promised(rate: float) -> None:
    same, too_low = replace(CASE, generator="same"), replace(CASE, generator="too_low")
    rates = {CASE: rate, same: rate, too_low: rate / RATE_FACTOR / 2}
    test = SequentialTest(at_a_rate(rates.__getitem__, 1))
    while not test.depends_on_chance:
        measured = test.measure(CASE)
    assert measured.shown >= ENOUGH_SHOWN
    test = SequentialTest(at_a_rate(rates.__getitem__, 2))
    test._rate = rate  # the measured rate varies, too
    assert sum(test.shows(same) for _ in range(TRIALS)) >= TRIALS * (1 - 1.2 * RISK)
    assert sum(test.shows(too_low) for _ in range(TRIALS)) <= TRIALS * RISK


@pytest.mark.parametrize("seed", range(FINDINGS))
def test_what_shows_in_half_of_the_tries_is_reduced_and_not_lost(seed: int) -> None:
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
def test_it_is_not_given_away_for_what_hardly_ever_shows(seed: int) -> None:
    """Without one of the needed statements it still shows, in one of fifty tries."""

    def rate(case: Case) -> float:
        needed = len(NEEDED & set(case.steps))
        return 0.5 if needed == len(NEEDED) else 0.02 * (needed > 0)

    left = reduce(CASE, at_a_rate(rate, seed), seconds=60, replay="", passes=[drop_steps])
    assert set(left.case.steps) >= NEEDED


def test_what_always_showed_at_first_may_turn_out_to_waver() -> None:
    asked: list[Case] = []

    def wavers_when_small(case: Case) -> bool:
        asked.append(case)
        return set(case.steps) >= NEEDED and (len(case.steps) > 10 or len(asked) % 3 > 0)

    left = reduce(CASE, wavers_when_small, seconds=60, replay="", passes=[drop_steps])
    assert set(left.case.steps) >= NEEDED
    assert 0 < left.occurrence.shown < left.occurrence.runs


def test_what_showed_once_and_never_again_is_taken_back() -> None:
    lucky: list[Case] = []

    def once_when_small(case: Case) -> bool:
        if set(case.steps) >= NEEDED:
            return True
        lucky.append(case)
        return len(lucky) == 1

    left = reduce(CASE, once_when_small, seconds=60, replay="", passes=[drop_steps])
    assert set(left.case.steps) == NEEDED
    assert left.occurrence.always


def test_what_always_shows_is_asked_about_once() -> None:
    asked: list[Case] = []

    def always(case: Case) -> bool:
        asked.append(case)
        return set(case.steps) >= NEEDED

    reduce(CASE, always, seconds=60, replay="", passes=[drop_steps])
    assert len(asked) == len(set(asked)) + 2 * (CERTAIN_TRIES - 1) + 1


def test_looking_ends_with_its_time_but_loses_nothing() -> None:
    """What shows once in ten tries is counted no longer than the time allows, though never given up as lost."""
    answers = iter([*9 * [False], True, *99 * [False]])
    test = SequentialTest(lambda case: next(answers))
    assert test.measure(CASE, seconds=0).runs == CERTAIN_TRIES  # the first case may not show it at all
    test._rate = 0.1
    measured = test.measure(CASE, seconds=0)
    assert (measured.shown, measured.runs) == (1, 10 - CERTAIN_TRIES)
