"""Partition keys of a batch's rows: the order in which its rows go to the partitions.

COPY has a buffer for each partition. When its buffers are full, it keeps the newest 32, and that of the present row.
So the order decides which buffers it drops, and makes again later.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Final

from fuzz.generators.choices import Weighted, between, chance, pick, shuffled
from fuzz.generators.copy_batches.formats import Absent, Cell
from fuzz.generators.copy_batches.values import int4

KEPT_BUFFERS: Final = 32  # MAX_PARTITION_BUFFERS of copyfrom.c: buffers that COPY keeps when it has written their rows
CACHED_AFTER: Final = 16  # PARTITION_CACHED_FIND_THRESHOLD of execPartition.c: equal partitions until one is cached
ORDERS: Final = Weighted((4, "turns"), (4, "runs"), (2, "skewed"), (1, "same"), (3, "returns"))
_RUNS: Final = (2, CACHED_AFTER + 1, 33)

Key = int | None


@dataclass(frozen=True, slots=True)
class Return:
    """Keys in turn, and then a run of one of them."""

    turn: tuple[Key, ...]
    again: Key

    def keys(self, run: int) -> tuple[Key, ...]:
        """Return the keys with a run of that length."""
        return self.turn + (self.again,) * run


def make_keys(rng: random.Random, keys: Sequence[Key], rows: int, order: str) -> tuple[Cell, ...]:
    """Return the keys of a number of rows, in one of ORDERS."""
    return cells(_ordered(rng, keys, order), rows)


def cells(keys: Sequence[Key], rows: int) -> tuple[Cell, ...]:
    """Return the keys as cells, repeated for a number of rows."""
    made: list[Cell] = [Absent.NULL if key is None else int4(key) for key in keys]
    return tuple(islice(cycle(made), rows))


def _ordered(rng: random.Random, keys: Sequence[Key], order: str) -> Sequence[Key]:
    if order == "runs":
        length = pick(rng, _RUNS)
        return [key for key in keys for _ in range(length)]
    if order == "skewed":
        return [pick(rng, keys)] * max(3 * len(keys), CACHED_AFTER + 1) + list(shuffled(rng, keys))
    if order == "same":
        return [pick(rng, keys)]
    if order == "returns":
        return [key for _ in range(between(rng, 1, 3)) for key in make_return(rng, keys).keys(pick(rng, _RUNS))]
    return _rotated(rng, keys)


def make_return(rng: random.Random, keys: Sequence[Key]) -> Return:
    """Return a turn of the keys, and one of them, which is mostly the first or the last of the turn.

    The turn has all keys, or about as many as there are buffers after a flush. It may be repeated.
    """
    turn = tuple(_rotated(rng, keys)) if chance(rng, 70) else shuffled(rng, keys)
    if len(turn) > KEPT_BUFFERS and chance(rng, 30):
        turn = turn[: KEPT_BUFFERS + between(rng, -1, 2)]
    places = (0, 0, 0, 1 % len(turn), len(turn) // 2, len(turn) - 1)
    again = turn[pick(rng, places)]
    return Return(turn * (2 if chance(rng, 25) else 1), again)


def _rotated(rng: random.Random, keys: Sequence[Key]) -> list[Key]:
    start = rng.randrange(len(keys))
    return [*keys[start:], *keys[:start]]
