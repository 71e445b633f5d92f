"""Generator `hash_growth`: hash tables of misestimated size, near the sizes where they grow or spill.

A table is hashed, entirely or in part, and two tables are joined to it. Its statistics may cover only a tenth of its
rows, include rows deleted later, or be missing. In half of the scenes, another table is larger, so that the planner
hashes even a source with a high estimate.

Sizes are numbers of rows at which a hash table gets an additional bucket or doubles. With one or two rows per bucket
that is a power of two; with ten rows per bucket, ten times a power of two. A work_mem of `snug` is just full with such
a number of rows.

A `_Misestimate` selects a chosen number of rows, while the planner expects fewer, more or as many. It is a FROM item
without alias. It selects by the row number i1, so the number of rows does not depend on keys.

In scenes with immense estimates, the planner expects 10^5 to 10^10 rows of each selection, or more. So it must hash one
of them, in as many batches as the memory allows. It hashes the smaller side, so the estimates of a scene have about the
same magnitude.

In contended scenes, the processes of a Parallel Hash meet at many batches: the tables are the largest ones, and the
memory is small. Whichever processes end a batch together also load the next one together. As it depends on their timing
what they then do, each query runs several times.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from fuzz.generators.choices import Stream, Weighted, another, begin, between, chance, pick
from fuzz.generators.generator import Generator, Scale
from fuzz.generators.hash_growth.first_key import first_key_case
from fuzz.generators.hash_growth.large_tables import large_table_case
from fuzz.generators.hash_growth.planned_filters import late_filter_case, shared_filter_case
from fuzz.generators.hash_growth.stored_joins import stored_join_case
from fuzz.generators.outer_joins.axes import KEYS, NULLS, WORKERS_ONLY, Axes, Memory, memory_of, settings_of
from fuzz.generators.outer_joins.generator import ACTIONS, joined
from fuzz.generators.outer_joins.scene import ALONE, FEW, LAST_KEY, Scene, called, contents
from fuzz.generators.sql import tables
from fuzz.generators.sql.columns import Spread
from fuzz.generators.sql.scope import RowSource
from fuzz.generators.sql.tables import Table
from oracles.explain.nodes import EXPLAINED
from oracles.model.case import Case, Step

PARAMETER = "$1"
_BODY = "'BEGIN RETURN QUERY SELECT * FROM {table} WHERE i1 <= {size}; END'"
_FUNCTION = f"CREATE FUNCTION {{name}}() RETURNS SETOF {{table}} LANGUAGE plpgsql STABLE {{how}} AS {_BODY}"


@dataclass(frozen=True, slots=True)
class Filled:
    """A table with the rows 1 to `last`, of which ANALYZE read the first `seen`."""

    table: Table
    last: int
    seen: int


@dataclass(frozen=True, slots=True)
class Grown:
    """A source of `size` rows, the steps that it needs, and tags that name the misestimate."""

    source: RowSource
    size: int
    steps: tuple[Step, ...]
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Misestimate:
    name: str
    expected: str  # the planner's estimate, relative to the rows: fewer, more, or right
    item: str
    function: str = ""
    rows: tuple[int, ...] = (0,)  # ROWS clauses of a function
    series: tuple[str, ...] = ("",)  # FROM items that multiply the estimate


_OF_TABLE = "(SELECT * FROM {table} WHERE {condition})"
_GROUPS = (
    "(SELECT k1, k2, i1, i2, i3, max(w1) AS w1 FROM {table} WHERE i1 <= {size} AND (i1 - 1) / {divisor} = 0"
    " GROUP BY k1, k2, i1, i2, i3)"
)


def _where(condition: str) -> str:
    return _OF_TABLE.replace("{condition}", condition)


# The planner assumes that an equality over an expression holds for 0.5 % of the rows, and an inequality for 99.5 %.
_ALWAYS = (
    (14, _Misestimate("counted", "right", _where("i1 <= {size}"))),
    (20, _Misestimate("implied", "fewer", _where("i1 <= {size} AND (i1 - 1) / {divisor} = 0"))),
    (12, _Misestimate("correlated", "fewer", _where("i1 <= {size} AND i2 / 4 = i3 AND i2 % 20 = i2 AND i3 * 4 <= i2"))),
    (8, _Misestimate("few", "fewer", "{name}()", _FUNCTION, (1, 10, 200))),
    (6, _Misestimate("series", "fewer", "(SELECT {values} FROM generate_series(1, (SELECT {size})) AS g)")),
    (8, _Misestimate("groups", "fewer", _GROUPS)),
    (10, _Misestimate("excluded", "more", _where("(i1 - 1) / {rest} <> 0"))),
    (8, _Misestimate("many", "more", "{name}()", _FUNCTION, (20_000, 200_000))),
)
# The planner expects 1000 rows of each generate_series whose bounds are not constant. A scan of a function cannot be
# parallel, but that of a table which is joined to series can.
_SERIES = (", generate_series(i1, i1) AS s1", ", generate_series(i1, i1) AS s1, generate_series(i1, i1) AS s2")
_OF_SERIES = "(SELECT {columns} FROM {table}{series} WHERE i1 <= {size})"
_IMMENSE_POWERS = (5, 10)  # of ten
_POWER_OF_TWO_SERIES = 8  # from this one on, two series are closer to it than one
# Otherwise the planner joins the tables first, and the series to that.
_SYNTACTIC_ORDER = tuple(Step(f"SET {kind}_collapse_limit = 1") for kind in ("from", "join"))
_BEYOND = _Misestimate("beyond", "fewer", _where("i1 > {seen} AND i1 <= {seen} + {size}"))
_MISESTIMATES = Weighted(*_ALWAYS)
# for tables whose statistics end with the rows that ANALYZE read
_MISESTIMATES_OF_STALE = Weighted(*_ALWAYS, (30, _BEYOND))
# of sources that processes can scan together
_SCANNED = ("counted", "implied", "correlated", "excluded")
_MISESTIMATES_OF_SCANS = Weighted(*(each for each in _ALWAYS if each[1].name in _SCANNED))
_GENERIC = _Misestimate("parameter", "right", _where(f"i1 <= {PARAMETER}::int4"))


def _immense_misestimates(rng: random.Random) -> Weighted[_Misestimate]:
    power = between(rng, *_IMMENSE_POWERS)
    series = _SERIES[power >= _POWER_OF_TWO_SERIES]
    return Weighted(
        (50, _Misestimate("claimed", "more", "{name}()", _FUNCTION, (10**power,))),
        (50, _Misestimate("multiplied", "more", _OF_SERIES, series=(series,))),
    )


def parameterized(rng: random.Random, filled: Filled, size: int) -> Grown:
    """Return a source with as many rows as the value of PARAMETER. A generic plan expects a third of the table."""
    return _made(rng, filled, size, "", _GENERIC)


def _made(rng: random.Random, filled: Filled, size: int, name: str, cause: _Misestimate) -> Grown:
    """Return a misestimated source of `size` rows, or of all rows of the table if there are fewer."""
    table = filled.table
    size = min(size, filled.last - filled.seen if cause is _BEYOND else filled.last)
    claimed = pick(rng, cause.rows)
    places = {
        "name": name,
        "columns": ", ".join(content.column.name for content in table.contents),
        "series": pick(rng, cause.series),
        "table": table.name,
        "size": size,
        "divisor": max(1, size),
        "seen": filled.seen,
        "rest": max(1, filled.last - size),
        "values": ", ".join(f"{content.value} AS {content.column.name}" for content in table.contents),
        "how": f"PARALLEL SAFE ROWS {max(1, claimed + between(rng, -1, 1))}",
    }
    source = replace(table.source, name=cause.item.format(**places), rows=size, keys=(), partitions=(), stored=False)
    steps = (Step(cause.function.format(**places)), called(name)) if cause.function else ()
    return Grown(source, size, steps, (f"way.{cause.name}", f"expected.{cause.expected}"))


FEWEST = 1024  # minimum number of buckets
_LOADS = (1, 10)  # rows per bucket, as planned
# Bytes of a row in the hash table: a key, some integers, and perhaps a short text.
_ROW = (40, 56, 48, 80, 120)
_POINTER = 8
_LEAST_WORK_MEM = 64


def draw_size(rng: random.Random, most: int) -> int:
    """Return a number of rows, at most `most`, at which the hash table doubles; or one row more or less."""
    edges = [load << power for load in _LOADS for power in range(1, most.bit_length()) if load << power <= most]
    growing = [edge for edge in edges if edge >= FEWEST]
    edge = pick(rng, growing if growing and chance(rng, 80) else edges or [most])
    return max(0, min(most, edge + pick(rng, (1, 0, -1))))


def snug(rng: random.Random, rows: int) -> Memory:
    """Return a work_mem that these rows and their buckets nearly fill, or exceed slightly."""
    tuples = rows * pick(rng, _ROW)
    buckets = _POINTER << max(FEWEST, rows // pick(rng, (1, 2))).bit_length()
    kilobytes = (tuples + buckets) // 1024 + between(rng, -2, 2)
    return Memory(max(_LEAST_WORK_MEM, kilobytes))


# Upper bound of hashed rows, as a multiple of the scale's rows.
_TIMES = Weighted((25, 8), (10, 4), (30, 16), (22, 32), (13, 56))
_SKEWS = Weighted((40, "unique"), (25, "repeated"), (15, "single"), (20, "unsplittable"))
_COPIES = (2, 3, FEW, 10, 50)
_MATCHING = Weighted((50, 1), (30, 2), (20, 10))
_ANALYZED = Weighted((35, "all"), (35, "tenth"), (15, "gone"), (15, "never"))
_MEMORIES = Weighted(
    (34, Memory(4096, 2)), (24, Memory(1024)), (12, Memory(64)), (8, Memory(64, 2)), (12, Memory(256)),
    (10, Memory(128, 3)),
)  # fmt: skip
_IMMENSE_SCENES = 20  # percent
# Contended scenes: percentage, rows as multiples of the scale's rows, memory of one process, skews, and executions
_CONTENDED_SCENES = 12
_CONTENDED_TIMES = (32, 44, 56)
_CONTENDED_MEMORIES = Weighted((70, Memory(64)), (20, Memory(64, 2)), (10, Memory(256)))
_CONTENDED_SKEWS = ("unique", "repeated")
_EXECUTIONS = 3
# upper bound of rows in pooled scenes, where slow scans make parallel processes take turns
_POOLED = 4200
_SOURCES = 5  # sources in addition to the tables


@dataclass(frozen=True, slots=True)
class Growth:
    """A scene with misestimated sources, and a variant in which one source has as many rows as a parameter's value."""

    scene: Scene
    grown: tuple[Grown, ...]
    generic: Grown
    parameterized: Scene
    immense: bool  # the planner expects 10^5 rows of each source, or many more
    contended: bool


def draw_growth(rng: random.Random, scale: Scale) -> Growth:
    """Return the scene of a case, with misestimated sources."""
    contended = chance(rng, _CONTENDED_SCENES)
    rows = scale.rows * pick(rng, _CONTENDED_TIMES) if contended else draw_size(rng, scale.rows * _TIMES.pick(rng))
    immense = not contended and chance(rng, _IMMENSE_SCENES)
    axes = _contended_axes(rng) if contended else _axes(rng, rows, immense=immense)
    hashed = Table("r1", contents(rng, axes, 0, rows, _keys(rng, axes, rows), axes.nulls), rows, None)
    steps, filled = _filled(rng, hashed)
    counts = (rows, rows) if contended else (_larger(rng, scale, rows), max(scale.rows // 2, rows // 3))
    others = tuple(_other(rng, axes, number, count) for number, count in enumerate(counts, 1))
    sizes = [rows if contended else draw_size(rng, rows) for _ in range(_SOURCES)]
    usual = _MISESTIMATES_OF_STALE if filled.seen else _MISESTIMATES
    causes = _MISESTIMATES_OF_SCANS if contended else _immense_misestimates(rng) if immense else usual
    made = tuple(_made(rng, filled, size, f"grown{n}", causes.pick(rng)) for n, size in enumerate(sizes))
    generic = parameterized(rng, filled, draw_size(rng, rows))
    all_steps = (
        *map(Step, (ALONE, *axes.key.needs)),
        *steps,
        *(step for table in others for step in _table_steps(rng, table)),
        *(step for each in made for step in each.steps),
        *(_SYNTACTIC_ORDER if immense else ()),
        *(_contended_settings(rng, axes) if contended else settings_of(rng, axes)),
    )
    stored = tuple(table.source for table in (hashed, *others))
    return Growth(
        Scene(axes, all_steps, (*(each.source for each in made), *stored)),
        made,
        generic,
        Scene(axes, all_steps, (generic.source, *stored[1:])),
        immense,
        contended,
    )


def _axes(rng: random.Random, rows: int, *, immense: bool) -> Axes:
    memory = snug(rng, rows) if chance(rng, 35) else _MEMORIES.pick(rng)
    return Axes(
        key=KEYS.pick(rng),
        nulls=NULLS.pick(rng),
        skew=_SKEWS.pick(rng),
        matching=_MATCHING.pick(rng),
        memory=Memory(_LEAST_WORK_MEM) if immense and chance(rng, 60) else memory,
        partitioned=False,
        pooled=rows <= _POOLED and chance(rng, 30),
        sized=True,
    )


def _contended_settings(rng: random.Random, axes: Axes) -> tuple[Step, ...]:
    """Return the settings of memory. Mostly the leader takes part, because its own pace makes it meet the others."""
    return (*memory_of(axes), Step(WORKERS_ONLY)) if chance(rng, 15) else memory_of(axes)


def _contended_axes(rng: random.Random) -> Axes:
    return Axes(
        key=KEYS.pick(rng),
        nulls=pick(rng, (0, 1)),
        skew=pick(rng, _CONTENDED_SKEWS),
        matching=1,
        memory=_CONTENDED_MEMORIES.pick(rng),
        partitioned=False,
        pooled=True,
        sized=True,
    )


def _keys(rng: random.Random, axes: Axes, rows: int) -> Spread:
    """Return the distribution of the integers behind the keys of the hashed table."""
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
    """Return the steps that fill and analyze the table, and the rows that it then has."""
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


def _table_steps(rng: random.Random, table: Table) -> Iterator[Step]:
    yield from tables.create(rng, table)
    yield tables.load(table, 1, table.rows)
    if chance(rng, 70):
        yield Step(f"ANALYZE {table.name}")


# Cases with scenes of their own
_SPECIAL: Weighted[Callable[[random.Random, Scale, str], Case] | None] = Weighted(
    (63, None), (2, large_table_case), (8, stored_join_case), (8, first_key_case), (12, shared_filter_case),
    (7, late_filter_case),
)  # fmt: skip


class HashGrowth(Generator):
    """Joins of a table whose hash table is about to double, under wrong estimates."""

    name: ClassVar[str] = "hash_growth"
    cpu_seconds: ClassVar[float] = 2.1
    modes: ClassVar[tuple[str, ...]] = (
        "hash_only",
        "no_loops",
        "hash_only+features_forced",
        "hash_only+parallel+one_worker",
        "hash_only+parallel+two_workers",
        "hash_only+parallel+four_workers",
        "hash_only+parallel+two_workers+features_forced",
        "extended",
        "prepared_generic",
        "prepared_custom",
        "cursor",
        "closed_early",
    )
    scene_weight: ClassVar[int] = 1
    query_weight: ClassVar[int] = 3

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: a scene with misestimated sources, then joins of them."""
        if special := _SPECIAL.pick(rng):
            return special(rng, scale, self.name)
        growth = draw_growth(rng, scale)
        most = 2 if growth.contended else max(2, scale.relations // 2)
        executions = _EXECUTIONS if growth.contended else 1
        begin(rng, Stream.ACTION)
        actions = [joined(rng, growth.scene, most)] * executions
        while another(rng, len(actions), scale.actions(6)):
            action = joined(rng, growth.scene, most) if growth.contended else _action(rng, growth, most)
            actions += [action] * executions
        grown = (*growth.grown, growth.generic)
        steps = tuple(_tagged(step, grown) for steps in actions for step in steps)
        samples = (EXPLAINED.name,) if growth.immense else ()  # needless batches are only in the output of EXPLAIN
        return Case(self.name, growth.scene.steps, steps, samples=samples)


def _action(rng: random.Random, growth: Growth, most: int) -> tuple[Step, ...]:
    if not chance(rng, 15):
        return ACTIONS.pick(rng)(rng, growth.scene, most)
    (step,) = joined(rng, growth.parameterized, most)
    return (replace(step, params=(str(growth.generic.size),)) if PARAMETER in step.sql else step,)


def _tagged(step: Step, grown: Iterable[Grown]) -> Step:
    """Return the step with the tags of the sources that it uses."""
    tags = {tag: None for each in grown if each.source.name in step.sql for tag in each.tags}
    return replace(step, tags=(*step.tags, *tags))
