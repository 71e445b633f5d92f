"""Delta debugging over lists: what is left, and how many questions it takes."""

import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from picire import DD, Outcome
from picire.config_iterators import backward, skip

from fuzz.triage.reduction.deltas import least, least_from_below, shortest, shortest_in_parts

Interesting = Callable[[tuple[int, ...]], bool]


class Asked:
    """Answers a question about numbers, and counts how often it is asked."""

    def __init__(self, interesting: Interesting) -> None:
        self.questions = 0
        self._interesting = interesting

    def __call__(self, kept: tuple[int, ...]) -> bool:
        self.questions += 1
        return self._interesting(kept)


@pytest.mark.parametrize("reducer", [shortest, shortest_in_parts])
@pytest.mark.parametrize("needed", [(), (0,), (999,), (3, 500, 501), (1, 2, 700, 998)])
def test_what_is_needed_is_all_that_stays(reducer: Callable[..., tuple[int, ...]], needed: tuple[int, ...]) -> None:
    asked = Asked(lambda kept: set(needed) <= set(kept))
    assert reducer(range(1000), asked) == needed
    assert asked.questions < 250


@pytest.mark.parametrize("search", [least, least_from_below])
@given(st.integers(-1, 5), st.integers(0, 300), st.integers(0, 300))
def test_the_least_number_is_found(search: Callable[..., int], too_little: int, more: int, still_more: int) -> None:
    answer = too_little + 1 + more
    assert search(too_little, answer + still_more, lambda number: number >= answer) == answer


def test_a_number_of_rows_that_matters_takes_few_questions() -> None:
    asked = Asked(lambda kept: len(kept) >= 1000)
    assert len(shortest_in_parts(range(1733), asked)) == 1000
    assert asked.questions < 100


def test_rows_in_vain_among_many_that_count_go_in_parts() -> None:
    asked = Asked(lambda kept: sum(each >= 500 for each in kept) >= 500)
    kept = shortest_in_parts(range(1000), asked)
    assert min(kept) >= 500 - 1000 // 32
    assert asked.questions < 300


def _by_picire(items: Sequence[int], is_interesting: Interesting) -> tuple[int, ...]:
    def test(kept: Sequence[int], _: object) -> Outcome:
        return Outcome.FAIL if is_interesting(tuple(kept)) else Outcome.PASS

    return tuple(DD(test, subset_first=False, subset_iterator=skip, complement_iterator=backward)(list(items)))


@given(st.integers(1, 40), st.integers(0, 1 << 32))
def test_ddmin_is_that_of_picire(length: int, seed: int) -> None:
    """Items need others at random, and all of them are needed for interest; so parts fail in many ways."""
    rng = random.Random(seed)
    needs = {item: rng.sample(range(item), min(item, rng.randrange(3))) for item in range(length)}
    wanted = rng.sample(range(length), rng.randint(1, min(4, length)))
    runs = rng.random() < 0.5  # an item without those that it needs is an error

    def is_interesting(kept: tuple[int, ...]) -> bool:
        there = set(kept)
        broken = runs and any(need not in there for item in kept for need in needs[item])
        return not broken and there.issuperset(wanted)

    end = least(0, length, lambda end: is_interesting(tuple(range(end))))  # `shortest` first drops what comes after
    asked = Asked(is_interesting)
    assert shortest(range(length), asked) == _by_picire(range(end), is_interesting)
