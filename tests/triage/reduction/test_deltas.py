"""Tests of delta debugging on lists: the result, and the number of tests."""

import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from picire import DD, Outcome
from picire.config_iterators import backward, skip

from fuzz.triage.reduction.deltas import least, least_from_below, shortest, shortest_in_parts

Interesting = Callable[[tuple[int, ...]], bool]


class CountingTest:
    """A test of numbers that counts its calls."""

    def __init__(self, interesting: Interesting) -> None:
        self.calls = 0
        self._interesting = interesting

    def __call__(self, kept: tuple[int, ...]) -> bool:
        self.calls += 1
        return self._interesting(kept)


@pytest.mark.parametrize("reducer", [shortest, shortest_in_parts])
@pytest.mark.parametrize("needed", [(), (0,), (999,), (3, 500, 501), (1, 2, 700, 998)])
def test_only_needed_items_stay(reducer: Callable[..., tuple[int, ...]], needed: tuple[int, ...]) -> None:
    test = CountingTest(lambda kept: set(needed) <= set(kept))
    assert reducer(range(1000), test) == needed
    assert test.calls < 250


@pytest.mark.parametrize("search", [least, least_from_below])
@given(st.integers(-1, 5), st.integers(0, 300), st.integers(0, 300))
def test_the_least_number_is_found(search: Callable[..., int], too_little: int, more: int, still_more: int) -> None:
    answer = too_little + 1 + more
    assert search(too_little, answer + still_more, lambda number: number >= answer) == answer


def test_a_necessary_number_of_rows_needs_few_tests() -> None:
    test = CountingTest(lambda kept: len(kept) >= 1000)
    assert len(shortest_in_parts(range(1733), test)) == 1000
    assert test.calls < 100


def test_unnecessary_rows_are_dropped_in_parts() -> None:
    test = CountingTest(lambda kept: sum(each >= 500 for each in kept) >= 500)
    kept = shortest_in_parts(range(1000), test)
    assert min(kept) >= 500 - 1000 // 32
    assert test.calls < 300


def _by_picire(items: Sequence[int], is_interesting: Interesting) -> tuple[int, ...]:
    def outcome_of(kept: Sequence[int], _: object) -> Outcome:
        return Outcome.FAIL if is_interesting(tuple(kept)) else Outcome.PASS

    return tuple(DD(outcome_of, subset_first=False, subset_iterator=skip, complement_iterator=backward)(list(items)))


@given(st.integers(1, 40), st.integers(0, 1 << 32))
def test_ddmin_equals_that_of_picire(length: int, seed: int) -> None:
    """Items need random others, and the test needs random items. So parts fail for many reasons."""
    rng = random.Random(seed)
    needs = {item: rng.sample(range(item), min(item, rng.randrange(3))) for item in range(length)}
    required = rng.sample(range(length), rng.randint(1, min(4, length)))
    runs = rng.random() < 0.5  # if true, an item without the others that it needs is an error

    def is_interesting(kept: tuple[int, ...]) -> bool:
        present = set(kept)
        broken = runs and any(need not in present for item in kept for need in needs[item])
        return not broken and present.issuperset(required)

    end = least(
        0, length, lambda end: is_interesting(tuple(range(end)))
    )  # `shortest` first drops the items after this one
    test = CountingTest(is_interesting)
    assert shortest(range(length), test) == _by_picire(range(end), is_interesting)
