"""Sizes: numbers of rows at which a hash table has one bucket more, or twice as many, than with a row less.

That is a power of two where there is a bucket for each row, or for each two of them; ten times one where there is a
bucket for ten rows; and what a memory just holds, which `snug` has a memory for.
"""

import random

from fuzz.generators.choices import between, chance, pick
from fuzz.generators.hashing.axes import Memory

FEWEST = 1024  # buckets that there are at least
_LOADS = (1, 10)  # rows in a bucket, as planned
_ROW = (40, 56, 48, 80, 120)  # bytes of a row in the hash table: a key, some numbers, and perhaps a short text
_POINTER = 8
_LEAST_WORK_MEM = 64


def draw_size(rng: random.Random, most: int) -> int:
    """Return a number of rows, at most so many, that is or neighbours one at which something doubles."""
    edges = [load << power for load in _LOADS for power in range(1, most.bit_length()) if load << power <= most]
    growing = [edge for edge in edges if edge >= FEWEST]
    edge = pick(rng, growing if growing and chance(rng, 80) else edges or [most])
    return max(0, min(most, edge + pick(rng, (1, 0, -1))))


def snug(rng: random.Random, rows: int) -> Memory:
    """Return a memory that so many rows and buckets for them nearly fill, or need a little more than."""
    tuples = rows * pick(rng, _ROW)
    buckets = _POINTER << max(FEWEST, rows // pick(rng, (1, 2))).bit_length()
    kilobytes = (tuples + buckets) // 1024 + between(rng, -2, 2)
    return Memory(max(_LEAST_WORK_MEM, kilobytes))
