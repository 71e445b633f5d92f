"""Delta debugging of lists: ddmin (Zeller and Hildebrandt 2002), complements only, from the last part to the first.

Statements and rows depend on earlier ones. So the last ones are the most likely to be removable, and a part without the
others rarely succeeds.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import TypeVar

import numpy

T = TypeVar("T")
PARTS = 32  # number of parts of a longer list


def shortest(items: Sequence[T], is_interesting: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Return a part of `items`, in order, from which no single item can be removed. The whole must be interesting."""
    if not items or is_interesting(()):
        return ()
    beginning = _shortest_beginning(items, is_interesting)
    return tuple(_minimized(list(beginning), is_interesting))


def _minimized(items: list[T], is_interesting: Callable[[tuple[T, ...]], bool]) -> list[T]:
    """Return an interesting part of the interesting `items` from which no single item can be dropped.

    No part is tried twice.
    """
    kept, tried = list(range(len(items))), set[tuple[int, ...]]()
    parts, start = _split(kept, 2), 0
    while len(kept) > 1:
        for number in reversed(range(len(parts))):
            left_out = (number + start) % len(parts)
            others = parts[:left_out] + parts[left_out + 1 :]
            complement = tuple(chain.from_iterable(others))
            if complement not in tried and is_interesting(tuple(items[index] for index in complement)):
                kept, start = list(complement), left_out
                parts = others if len(others) > 1 else _split(kept, 2)
                break
            tried.add(complement)
        else:
            if len(parts) == len(kept):
                break
            finer = _split(kept, 2 * len(parts))
            parts, start = finer, start * len(finer) // len(parts)
    return [items[index] for index in kept]


def _split(indexes: list[int], count: int) -> list[list[int]]:
    """Split into at most `count` parts of about equal length."""
    count = min(len(indexes), count)
    ends = [0]
    for left in range(count, 0, -1):
        ends.append(ends[-1] + (len(indexes) - ends[-1]) // left)
    return [indexes[begin:end] for begin, end in pairwise(ends)]


def shortest_in_parts(items: Sequence[T], is_interesting: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Return a part of `items`, in order, from which none of 32 equal parts can be removed; of at most 32 no item.

    This is for rows: if their number matters, a test of each single row would take too long.
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
    """Return the shortest interesting prefix, by bisection, which needs few tests if only the first rows matter."""
    return tuple(items[: least(0, len(items), lambda end: is_interesting(tuple(items[:end])))])


def least(too_little: int, enough: int, is_interesting: Callable[[int], bool]) -> int:
    """Return the smallest interesting number up to `enough`, which is interesting, by bisection.

    The numbers above an interesting one are taken to be interesting, too.
    """
    while enough - too_little > 1:
        middle = (too_little + enough) // 2
        if is_interesting(middle):
            enough = middle
        else:
            too_little = middle
    return enough


def least_from_below(too_little: int, enough: int, is_interesting: Callable[[int], bool]) -> int:
    """Return the same as `least` with steps that double from below.

    That is faster if a small number is probable, because a positive test takes longer than a negative one.
    """
    step = 1
    while too_little + step < enough and not is_interesting(too_little + step):
        too_little += step
        step *= 2
    return least(too_little, min(too_little + step, enough), is_interesting)
