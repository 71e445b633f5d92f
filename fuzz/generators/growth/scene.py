"""The scene: a table whose rows are hashed, some or all of them, and two that are joined with it.

Its statistics may be of a tenth of its rows, of many that are gone since, or missing. Another table is larger in half
of the scenes, or the planner would hash that instead of what it expects many rows of.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from fuzz.generators.choices import Weighted, between, chance, pick
from fuzz.generators.generator import Scale
from fuzz.generators.growth.misjudged import Filled, Grown, grown, parameterized
from fuzz.generators.growth.sizes import draw_size, snug
from fuzz.generators.hashing.axes import NULLS, Axes, Memory, settings_of
from fuzz.generators.hashing.keys import KEYS
from fuzz.generators.hashing.scene import ALONE, FEW, LAST_KEY, Scene, contents
from fuzz.generators.relational import tables
from fuzz.generators.relational.columns import Spread
from fuzz.generators.relational.tables import Table
from oracles.case import Step

_TIMES = Weighted((25, 8), (10, 4), (30, 16), (22, 32), (13, 56))  # rows that are hashed at most, times the scale's
_SKEWS = Weighted((40, "unique"), (25, "repeated"), (15, "single"), (20, "unsplittable"))
_COPIES = (2, 3, FEW, 10, 50)
_MATCHING = Weighted((50, 1), (30, 2), (20, 10))
_ANALYZED = Weighted((35, "all"), (35, "tenth"), (15, "gone"), (15, "never"))
_MEMORIES = Weighted(
    (34, Memory(4096, 2)), (24, Memory(1024)), (12, Memory(64)), (8, Memory(64, 2)), (12, Memory(256)),
    (10, Memory(128, 3)),
)  # fmt: skip
_POOLED = 4200  # rows, some of which take a while to read where processes are to take turns
_SOURCES = 5  # besides the tables


@dataclass(frozen=True, slots=True)
class Growth:
    """A scene and its misjudged sources; and the same with one of as many rows as a parameter says in their place."""

    scene: Scene
    grown: tuple[Grown, ...]
    generic: Grown
    parameterized: Scene


def draw_growth(rng: random.Random, scale: Scale) -> Growth:
    """Return the scene of a case, with sources of other sizes than are expected."""
    most = scale.rows * _TIMES.pick(rng)
    rows = draw_size(rng, most)
    axes = _axes(rng, rows)
    hashed = Table("r1", contents(rng, axes, 0, rows, _keys(rng, axes, rows), axes.nulls), rows, None)
    steps, filled = _filled(rng, hashed)
    counts = _larger(rng, scale, rows), max(scale.rows // 2, rows // 3)
    others = tuple(_other(rng, axes, number, count) for number, count in enumerate(counts, 1))
    made = tuple(grown(rng, filled, draw_size(rng, rows), number) for number in range(_SOURCES))
    generic = parameterized(rng, filled, draw_size(rng, rows))
    all_steps = (
        *map(Step, (ALONE, *axes.key.needs)),
        *steps,
        *(step for table in others for step in _plainly(rng, table)),
        *(step for each in made for step in each.steps),
        *settings_of(rng, axes),
    )
    stored = tuple(table.source for table in (hashed, *others))
    return Growth(
        Scene(axes, all_steps, (*(each.source for each in made), *stored)),
        made,
        generic,
        Scene(axes, all_steps, (generic.source, *stored[1:])),
    )


def _axes(rng: random.Random, rows: int) -> Axes:
    return Axes(
        key=KEYS.pick(rng),
        nulls=NULLS.pick(rng),
        skew=_SKEWS.pick(rng),
        matching=_MATCHING.pick(rng),
        memory=snug(rng, rows) if chance(rng, 35) else _MEMORIES.pick(rng),
        partitioned=False,
        pooled=rows <= _POOLED and chance(rng, 30),
        sized=True,
    )


def _keys(rng: random.Random, axes: Axes, rows: int) -> Spread:
    """Return the integers behind the keys of the hashed table."""
    once = Spread(f"g % {LAST_KEY}", 1 + rows // LAST_KEY)
    if axes.skew == "repeated":
        copies = pick(rng, _COPIES)
        return Spread(f"g / {copies} % {LAST_KEY}", copies * once.fan)
    value = between(rng, 1, 9) * axes.matching
    if axes.skew == "single":
        return Spread(str(value), rows)
    if axes.skew == "unsplittable":
        return Spread(f"CASE WHEN g % {pick(rng, (3, 2, 10))} = 0 THEN {once.sql} ELSE {value} END", rows)
    return once


def _larger(rng: random.Random, scale: Scale, rows: int) -> int:
    return rows + rows // 4 if chance(rng, 50) else between(rng, scale.rows // 4, scale.rows * 2)


def _other(rng: random.Random, axes: Axes, number: int, rows: int) -> Table:
    spread = Spread(f"g * {axes.matching} % {LAST_KEY}", 1 + rows // LAST_KEY)
    return Table(f"r{number + 1}", contents(rng, axes, number, rows, spread, 0), rows, None)


def _filled(rng: random.Random, table: Table) -> tuple[tuple[Step, ...], Filled]:
    """Return the steps that fill the table, with statistics of some time, and what it has then."""
    analyze = Step(f"ANALYZE {table.name}")
    create, load = tuple(tables.create(rng, table)), tables.load(table, 1, table.rows)
    analyzed = _ANALYZED.pick(rng)
    if analyzed == "tenth":
        seen = table.rows // 10
        parts = tables.load(table, 1, seen), analyze, tables.load(table, seen + 1, table.rows)
        return (*create, *parts), Filled(table, table.rows, seen)
    if analyzed == "gone":
        last = draw_size(rng, table.rows)
        return (*create, load, analyze, Step(f"DELETE FROM {table.name} WHERE i1 > {last}")), Filled(table, last, 0)
    steps = (*create, load, analyze) if analyzed == "all" else (*create, load)
    return steps, Filled(table, table.rows, 0)


def _plainly(rng: random.Random, table: Table) -> Iterator[Step]:
    yield from tables.create(rng, table)
    yield tables.load(table, 1, table.rows)
    if chance(rng, 70):
        yield Step(f"ANALYZE {table.name}")
