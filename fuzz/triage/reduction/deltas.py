"""Delta debugging over any list: picire's ddmin, asking about complements only, last part first.

Statements and rows depend on earlier ones, so what stands last is likeliest to go, and a part alone rarely runs.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import TypeVar

import numpy
from picire import DD, Outcome
from picire.config_iterators import backward, skip

T = TypeVar("T")
PARTS = 32  # that rows are cut into, as long as there are more of them


def shortest(items: Sequence[T], is_interesting: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Return a part of `items`, in order, of which no single item can be left out. All of them must be interesting."""
    if not items or is_interesting(()):
        return ()
    beginning = _shortest_beginning(items, is_interesting)

    def test(kept: Sequence[int], _: object) -> Outcome:
        return Outcome.FAIL if is_interesting(tuple(beginning[index] for index in kept)) else Outcome.PASS

    minimize = DD(test, subset_first=False, subset_iterator=skip, complement_iterator=backward)
    return tuple(beginning[index] for index in minimize(list(range(len(beginning)))))


def shortest_in_parts(items: Sequence[T], is_interesting: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Return a part of `items`, in order, of which none of 32 equal parts can be left out, nor any item of at most 32.

    For rows: where their number matters, to find that no single one can go would take a question for each.
    """
    best = _shortest_beginning(items, is_interesting)
    while len(best) > PARTS:
        parts = [tuple(part) for part in numpy.array_split(range(len(best)), PARTS)]
        kept = shortest(parts, partial(_still, is_interesting, best))
        if len(kept) == PARTS:
            return best
        best = _taken(best, kept)
    return shortest(best, is_interesting)


def _still(
    is_interesting: Callable[[tuple[T, ...]], bool], items: Sequence[T], parts: tuple[tuple[int, ...], ...]
) -> bool:
    return is_interesting(_taken(items, parts))


def _taken(items: Sequence[T], parts: Iterable[Iterable[int]]) -> tuple[T, ...]:
    return tuple(items[index] for index in chain.from_iterable(parts))


def _shortest_beginning(items: Sequence[T], is_interesting: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Bisect for where the items may end: a few questions instead of many when only the first rows matter."""
    return tuple(items[: least(0, len(items), lambda end: is_interesting(tuple(items[:end])))])


def least(too_little: int, enough: int, is_interesting: Callable[[int], bool]) -> int:
    """Bisect for the smallest number that is interesting, as if all larger ones were; `enough` is known to be."""
    while enough - too_little > 1:
        middle = (too_little + enough) // 2
        if is_interesting(middle):
            enough = middle
        else:
            too_little = middle
    return enough


def least_from_below(too_little: int, enough: int, is_interesting: Callable[[int], bool]) -> int:
    """Find the same in steps that double: where little is likely to do, since it takes longer to be sure than not."""
    step = 1
    while too_little + step < enough and not is_interesting(too_little + step):
        too_little += step
        step *= 2
    return least(too_little, min(too_little + step, enough), is_interesting)
