"""Weighted random choices.

All randomness comes from `randrange`. Zero always selects the simplest option, so a shrinking rng simplifies the case.
"""

import random
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from hashlib import sha256
from itertools import accumulate
from typing import Generic, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

_TRIES = 3  # attempts of `first_made`


class Stream(Enum):
    """The parts of a case whose choices are kept apart."""

    MODES = auto()  # modes, role and row security
    SCENE = auto()
    EDITS = auto()  # changes of the queries afterwards
    ACTION = auto()  # the next statement, or the next statements that belong together


class StreamedRandom(random.Random, ABC):
    """A source of random choices that has a stream of them for each part of a case."""

    @abstractmethod
    def begin(self, stream: Stream) -> None:
        """Take the next choices from this stream; each time, that of another action."""

    @abstractmethod
    def has_another_action(self) -> bool:
        """Return whether there is a stream for another action."""


def begin(rng: random.Random, stream: Stream) -> None:
    """Begin the choices of a part of the case. Most sources of choices have a single stream."""
    if isinstance(rng, StreamedRandom):
        rng.begin(stream)


def another(rng: random.Random, made: int, most: int, *, ending: int = 100) -> bool:
    """Begin another action unless there are `most`, and return whether there is one.

    With a single stream, one choice of `ending` ends the case, and so does a shrinking rng.
    """
    if made >= most:
        return False
    if not isinstance(rng, StreamedRandom):
        return rng.randrange(ending) > 0
    if more := rng.has_another_action():
        rng.begin(Stream.ACTION)
    return more


class Weighted(Generic[T]):
    """Options with integer weights, simplest first."""

    __slots__ = ("_steps", "options")

    def __init__(self, *weighted: tuple[int, T]) -> None:
        self.options = tuple(option for _, option in weighted)
        self._steps = tuple(accumulate(weight for weight, _ in weighted))

    def pick(self, rng: random.Random) -> T:
        """Return one option with a probability proportional to its weight."""
        return self.options[bisect_right(self._steps, rng.randrange(self._steps[-1]))]


def chance(rng: random.Random, percent: int) -> bool:
    """Return True with a probability of `percent`; shrinks to False."""
    return rng.randrange(100) >= 100 - percent


def pick(rng: random.Random, options: Sequence[T]) -> T:
    """Return one option; all are equally likely."""
    return options[rng.randrange(len(options))]


def pick_name(rng: random.Random, weights: Mapping[str, int]) -> str:
    """Return a name with a probability proportional to its weight, so that a new name changes only its own picks.

    Rendezvous hashing: a name has as many hashes of one random number as its weight, and the greatest hash wins.
    Source: Thaler and Ravishankar, "Using name-based mappings to increase hit rates", IEEE/ACM Transactions on
    Networking 6(1), 1998.
    """
    drawn = rng.randrange(1 << 64)
    hashes = {name: [_hash(f"{drawn} {name} {n}") for n in range(weight)] for name, weight in weights.items()}
    return max((hash_, name) for name, own in hashes.items() for hash_ in own)[1]


def _hash(text: str) -> bytes:
    return sha256(text.encode()).digest()


def between(rng: random.Random, low: int, high: int) -> int:
    """Return an integer between `low` and `high`, both inclusive."""
    return low + rng.randrange(high - low + 1)


def shuffled(rng: random.Random, options: Sequence[T]) -> tuple[T, ...]:
    """Return the options in random order; shrinks to the given order."""
    return some(rng, options, len(options))


def some(rng: random.Random, options: Sequence[T], count: int) -> tuple[T, ...]:
    """Return `count` different options in random order, or all options if there are fewer."""
    rest = list(options)
    result: list[T] = []
    while rest and len(result) < count:
        result.append(rest.pop(rng.randrange(len(rest))))
    return tuple(result)


def first_made(
    rng: random.Random, makers: Weighted[Callable[P, T | None]], *args: P.args, **kwargs: P.kwargs
) -> T | None:
    """Return the result of a random constructor that accepts the arguments, or None after three attempts.

    A constructor refuses its arguments by returning None. Callers then use a fallback that always succeeds.
    """
    for _ in range(_TRIES):
        made = makers.pick(rng)(*args, **kwargs)
        if made is not None:
            return made
    return None
