"""Weighted picks. Everything is drawn by `randrange`, whose zero means the simplest: so a shrinking rng simplifies."""

import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Generic, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

_TRIES = 3  # constructors drawn before the leaf is taken


class Weighted(Generic[T]):
    """Options with integer weights, simplest first."""

    __slots__ = ("_steps", "options")

    def __init__(self, *weighted: tuple[int, T]) -> None:
        self.options = tuple(option for _, option in weighted)
        self._steps = tuple(accumulate(weight for weight, _ in weighted))

    def pick(self, rng: random.Random) -> T:
        """Return one option, each as often as its weight says."""
        return self.options[bisect_right(self._steps, rng.randrange(self._steps[-1]))]


def chance(rng: random.Random, percent: int) -> bool:
    """Return True in so many of a hundred draws; shrinks to False."""
    return rng.randrange(100) >= 100 - percent


def pick(rng: random.Random, options: Sequence[T]) -> T:
    """Return one option, all equally likely."""
    return options[rng.randrange(len(options))]


def between(rng: random.Random, low: int, high: int) -> int:
    """Return an integer from low to high, both included."""
    return low + rng.randrange(high - low + 1)


def shuffled(rng: random.Random, options: Sequence[T]) -> tuple[T, ...]:
    """Return the options in another order; shrinks to the one given."""
    rest = list(options)
    result: list[T] = []
    while rest:
        result.append(rest.pop(rng.randrange(len(rest))))
    return tuple(result)


def some(rng: random.Random, options: Sequence[T], count: int) -> tuple[T, ...]:
    """Return `count` of the options (all, if there are fewer), each at most once, in any order."""
    rest = list(options)
    result: list[T] = []
    while rest and len(result) < count:
        result.append(rest.pop(rng.randrange(len(rest))))
    return tuple(result)


def first_made(
    rng: random.Random, makers: Weighted[Callable[P, T | None]], *args: P.args, **kwargs: P.kwargs
) -> T | None:
    """Draw constructors until one fits the arguments, a few times at most; None: take your leaf."""
    for _ in range(_TRIES):
        made = makers.pick(rng)(*args, **kwargs)
        if made is not None:
            return made
    return None
