"""Axes of variation, drawn independently, so that all pairs and most triples of values occur soon.

The planner's axes (parallel, partitionwise) are modes, so that an oracle can compare the reference with itself without
them. One axis is the kind of join key: its types, collation and expressions.
"""

import random
from dataclasses import dataclass, replace

from fuzz.generators.choices import Weighted, chance, pick
from fuzz.generators.sql.sqltypes import DATE, INT2, INT4, INT8, NUMERIC, PAIR, TEXT, UUID, VARCHAR, Type
from oracles.model.case import Step

_ROOT = '"und-x-icu"'
_FOLDING = "folding"
_MAKE_FOLDING = f"CREATE COLLATION {_FOLDING} (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
_MAKE_PAIR = "CREATE TYPE pair AS (a int4, b int4)"
# repetitions in a long key: 300 bytes, far more than the planner's default estimate
_LONG = 60

_LONG_TEXT = replace(TEXT, embedding=f"repeat({TEXT.embedding}, {_LONG})", text=lambda n: TEXT.text(n) * _LONG)
# A family of its own, because functions that return text may distinguish equal values.
_LOWER = replace(TEXT, family="folded").collated(_FOLDING)
_UPPER = replace(_LOWER, embedding=f"upper({TEXT.embedding})", text=lambda n: TEXT.text(n).upper())

_INTEGER_FORMS = ("{} + 1", "{} * 2", "abs({})", "{} * 1.5", "{}::int8", "{}::numeric")
_TEXT_FORMS = ("lower({})", "{} || '.'", "md5({})", "{}::varchar")


@dataclass(frozen=True, slots=True)
class Key:
    """A kind of join key.

    Tables of a case use its types in turn; equal integers embed into equal values of all types.
    """

    name: str
    types: tuple[Type, ...]
    # expressions that differ if the keys differ, and never fail
    forms: tuple[str, ...]
    needs: tuple[str, ...] = ()  # statements that create the types
    text: Type = TEXT  # type of other text columns, because two collations must not meet

    @property
    def crosses(self) -> bool:
        """Return whether keys of different types are compared."""
        return len(self.types) > 1

    @property
    def mixes(self) -> bool:
        """Return whether keys may be output, grouped and merged without restriction: equal keys have equal bytes."""
        return self.types[0].family != "folded"


KEYS = Weighted(
    (10, Key("int4", (INT4,), _INTEGER_FORMS)),
    (8, Key("int2", (INT2,), _INTEGER_FORMS)),
    (8, Key("int8", (INT8,), _INTEGER_FORMS)),
    (8, Key("int_cross", (INT4, INT8, INT2), _INTEGER_FORMS)),
    (8, Key("numeric", (NUMERIC,), ("{} + 0.5", "(-{})", "abs({})", "{} * 2"))),
    (8, Key("text", (TEXT,), _TEXT_FORMS)),
    (8, Key("text_cross", (TEXT, VARCHAR), _TEXT_FORMS)),
    (8, Key("text_long", (_LONG_TEXT,), _TEXT_FORMS)),
    (8, Key("text_icu", (TEXT.collated(_ROOT),), _TEXT_FORMS, text=TEXT.collated(_ROOT))),
    (8, Key("text_folded", (_LOWER, _UPPER), ("lower({})", "{} || '.'"), (_MAKE_FOLDING,))),
    (8, Key("uuid", (UUID,), ("{}::text",))),
    (8, Key("date", (DATE,), ("{} + 1", "{}::timestamp", "({} - DATE '2024-01-01')"))),
    (8, Key("pair", (PAIR,), ("({0}).a * 10 + ({0}).b",), (_MAKE_PAIR,))),
)


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of a hash table: work_mem in kB, and hash_mem_multiplier."""

    kilobytes: int
    multiplier: int = 1

    @property
    def name(self) -> str:
        """Return the value of work_mem."""
        return f"{self.kilobytes // 1024}MB" if self.kilobytes % 1024 == 0 else f"{self.kilobytes}kB"

    @property
    def tag(self) -> str:
        """Return a tag: the amount if it is a power of two, otherwise `snug`, which fits a number of rows."""
        return f"memory.{self.name if self.kilobytes & (self.kilobytes - 1) == 0 else 'snug'}"

    @property
    def bytes(self) -> int:
        """Return the memory in bytes."""
        return self.kilobytes * self.multiplier * 1024


@dataclass(frozen=True, slots=True)
class Axes:
    """The axes of a case."""

    key: Key
    nulls: int  # percentage of a table's keys
    skew: str
    # one in about `matching` keys of the large table has a match; 0: none has
    matching: int
    memory: Memory
    partitioned: bool
    pooled: bool  # so large that even the memory of several processes is too small
    # numbers of rows matter, and the sources are misestimated already
    sized: bool = False

    @property
    def bare(self) -> bool:
        """Return whether plain tables are preferred.

        Subqueries would hide partitions and the statistics of frequent keys.
        """
        return self.partitioned or self.sized or self.skew == "hot"

    @property
    def tags(self) -> tuple[str, ...]:
        """Return a tag for each axis."""
        return (
            f"key.{self.key.name}",
            f"nulls.{self.nulls}",
            f"skew.{self.skew}",
            self.memory.tag,
            *(("partitioned",) if self.partitioned else ()),
            *(("pooled",) if self.pooled else ()),
        )


NULLS = Weighted((40, 0), (24, 1), (24, 50), (12, 100))
SKEWS = Weighted((40, "uniform"), (30, "hot"), (30, "unsplittable"))
_MATCHING = Weighted((35, 1), (25, 2), (25, 10), (15, 0))
MEMORIES = Weighted((46, Memory(64)), (12, Memory(64, 2)), (14, Memory(256)), (15, Memory(1024)), (13, Memory(4096)))
# With several batches, the participants of a Parallel Hash share this memory. Each reserves 32 kB of it.
_MEMORIES_POOLED = Weighted((15, Memory(64, 2)), (35, Memory(256)), (50, Memory(512)))
_WORKERS_ONLY = "SET parallel_leader_participation = off"  # otherwise the leader may finish before workers start
# Settings that make the planner avoid nodes which hide a rescan, or share hash tables differently. None of them is
# among the settings in OTHER_PLANS of oracles/framework/shared_runs.py.
_PLANNER_SETTINGS = (
    "SET enable_material = off",
    "SET enable_parallel_hash = off",
    _WORKERS_ONLY,
    "SET cursor_tuple_fraction = 1",
)


def draw_axes(rng: random.Random) -> Axes:
    """Return the axes of a case."""
    pooled = chance(rng, 30)
    return Axes(
        key=KEYS.pick(rng),
        nulls=NULLS.pick(rng),
        skew=SKEWS.pick(rng),
        matching=_MATCHING.pick(rng),
        memory=(_MEMORIES_POOLED if pooled else MEMORIES).pick(rng),
        partitioned=chance(rng, 35),
        pooled=pooled,
    )


def settings_of(rng: random.Random, axes: Axes) -> tuple[Step, ...]:
    """Return the steps that set the memory of hash tables, and perhaps one more planner setting."""
    steps = (
        Step(f"SET work_mem = '{axes.memory.name}'"),
        Step(f"SET hash_mem_multiplier = {axes.memory.multiplier}"),
    )
    if axes.pooled and chance(rng, 50):
        return (*steps, Step(_WORKERS_ONLY))
    return (*steps, Step(pick(rng, _PLANNER_SETTINGS))) if chance(rng, 40) else steps
