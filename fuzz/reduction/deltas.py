"""Delta debugging over any list: picire's ddmin, asking about complements only, last part first.

Statements and rows depend on earlier ones, so what stands last is likeliest to go, and a part alone rarely runs.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from picire import DD, Outcome
from picire.config_iterators import backward, skip

T = TypeVar("T")


def shortest(items: Sequence[T], is_interesting: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Return a part of `items`, in order, of which no single item can be left out. All of them must be interesting."""
    if not items or is_interesting(()):
        return ()
    beginning = _shortest_beginning(items, is_interesting)

    def test(kept: Sequence[int], _: object) -> Outcome:
        return Outcome.FAIL if is_interesting(tuple(beginning[index] for index in kept)) else Outcome.PASS

    minimize = DD(test, subset_first=False, subset_iterator=skip, complement_iterator=backward)
    return tuple(beginning[index] for index in minimize(list(range(len(beginning)))))


def _shortest_beginning(items: Sequence[T], is_interesting: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Bisect for where the items may end: a few questions instead of many when only the first rows matter."""
    too_few, enough = 0, len(items)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if is_interesting(tuple(items[:middle])):
            enough = middle
        else:
            too_few = middle
    return tuple(items[:enough])
