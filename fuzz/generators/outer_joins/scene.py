"""Scene of `outer_joins`: a large, a medium and a small table with common keys, and a misestimated function.

All tables but one have few rows per key, so joins of different tables do not multiply rows. The large table has
frequent keys ("hot"). The medium table has keys that no number of batches splits ("unsplittable").
"""

import random
from dataclasses import dataclass, replace

from fuzz.generators.choices import Weighted, between, chance, pick
from fuzz.generators.generator import Scale
from fuzz.generators.outer_joins.axes import Axes, draw_axes, settings_of
from fuzz.generators.sql.columns import Content, Spread
from fuzz.generators.sql.partitions import Scheme, draw_scheme, whole
from fuzz.generators.sql.scope import Column, RowSource
from fuzz.generators.sql.sqltypes import INT4, Type
from fuzz.generators.sql.tables import Table, steps_of
from oracles.model.case import Step

FEW = 4  # maximum number of rows per key in a table that is not heavy
LAST_KEY = 9973  # prime; keys embed integers below it
_DOMAINS = (53, 211, 503, 997, 1999, 4999)
_WIDE_BYTES = 300_000  # approximate bytes of the wide column of a table
# processes of a Parallel Hash whose combined memory a pooled table exceeds
_PARTICIPANTS = 6
_MISJUDGED = "few"
ALONE = "SET max_parallel_maintenance_workers = 0"  # otherwise each build of a small index waits for workers to start


@dataclass(frozen=True, slots=True)
class Scene:
    """The axes of a case, the steps of its scene, and sources for joins. At most two sources have many rows per key."""

    axes: Axes
    steps: tuple[Step, ...]
    sources: tuple[RowSource, ...]

    @property
    def light(self) -> tuple[RowSource, ...]:
        """Return the sources with few rows per key."""
        return tuple(source for source in self.sources if key_of(source.columns).fan <= FEW)


def key_of(columns: tuple[Column, ...]) -> Column:
    """Return the join key among the columns of a table."""
    return next(column for column in columns if column.name == "k1")


def called(function: str) -> Step:
    """Return a call. The session keeps the function's plans, so all arms have them, even if a query skips the call."""
    return Step(f"SELECT count(*) FROM {function}()")


def draw_scene(rng: random.Random, scale: Scale) -> Scene:
    """Return the scene of a case."""
    axes = draw_axes(rng)
    tables = _tables(rng, scale, axes)
    steps = [
        *map(Step, (ALONE, *axes.key.needs)),
        *(step for table in tables for step in steps_of(rng, table, indexes=1)),
    ]
    if axes.skew == "hot" and chance(rng, 60):
        steps.append(Step(f"ANALYZE {tables[0].name}"))  # otherwise the planner does not know the most common keys
    sources = tuple(table.source for table in tables)
    if not axes.pooled and chance(rng, 40):
        body = f"BEGIN RETURN QUERY SELECT * FROM {tables[1].name}; END"
        how = f"STABLE PARALLEL SAFE ROWS {between(rng, 1, 20)}"
        create = f"CREATE FUNCTION {_MISJUDGED}() RETURNS SETOF {tables[1].name} LANGUAGE plpgsql {how} AS '{body}'"
        steps += [Step(create), called(_MISJUDGED)]
        sources += (replace(sources[1], name=f"{_MISJUDGED}()", keys=(), partitions=(), stored=False),)
    return Scene(axes, (*steps, *settings_of(rng, axes)), sources)


def _tables(rng: random.Random, scale: Scale, axes: Axes) -> tuple[Table, ...]:
    low, high = _POOLED if axes.pooled else _MIDDLING[axes.skew]
    counts = (
        scale.rows * _SIZES.pick(rng),
        scale.rows * between(rng, low, high),
        _small(rng, scale, axes),
    )
    nullable = pick(rng, ((0,), (1,), (0, 1), (0, 1, 2))) if axes.nulls else ()
    keys = _keys(rng, counts, axes)
    drawn = []
    scheme = None
    for n, (rows, spread) in enumerate(zip(counts, keys, strict=True)):
        nulls = axes.nulls if n in nullable else 0
        columns = contents(rng, axes, n, rows, spread, nulls)
        if axes.partitioned and not n:
            scheme = _scheme(rng, columns, axes, scale)
        primary = ("i1",) if not scheme and chance(rng, 30) else ()
        drawn.append(Table(f"r{n + 1}", columns, rows, scheme, primary))
    return tuple(drawn)


def _small(rng: random.Random, scale: Scale, axes: Axes) -> int:
    if axes.pooled:
        return scale.rows * between(rng, *_POOLED)
    if axes.skew == "hot":
        return between(rng, scale.rows // 2, 2 * scale.rows)
    return rng.randrange(3) if chance(rng, 8) else between(rng, scale.rows // 4, scale.rows)


# Rows of the tables, as multiples of the scale's rows. The large table is probed with frequent keys, and the medium one
# has enough rows of unsplittable keys. A few tables are so large that a join can measure whether a filter pays.
_SIZES = Weighted((48, 4), (24, 5), (16, 8), (8, 16), (4, 40))
_MIDDLING = {"uniform": (1, 5), "hot": (2, 4), "unsplittable": (4, 6)}
# for both smaller tables instead; otherwise the smallest one would be hashed, and fit into memory
_POOLED = (4, 12)


def _keys(rng: random.Random, counts: tuple[int, ...], axes: Axes) -> tuple[Spread, ...]:
    """Return the distributions of the integers behind the keys.

    Keys of the large table are in a domain; those of the others are in and beyond it.
    """
    large, middling, small = counts
    domains = [prime for prime in _DOMAINS if prime * (FEW - 1) >= large] or [LAST_KEY]
    covered = [prime for prime in domains if prime <= middling]
    covers = axes.matching == 1 and bool(covered) and chance(rng, 60)  # all keys of the large table have a match
    domain = pick(rng, covered if covers else domains)
    hot = axes.matching * between(rng, 1, 9)
    often = pick(rng, (3, 2, 10))
    drawn = [Spread(f"g * {pick(rng, (1, 7, 13))} % {domain}", large // domain + 1)]
    # A frequent key has more rows than the planner's estimate for the skew hash table, which stays in memory.
    copied = (2, FEW) if axes.skew == "hot" else (1, 2)
    for rows in (middling, small):
        copies = 1 if covers else between(rng, *copied)
        counted = f"g / {copies}" if copies > 1 else "g"
        others = (
            f"{counted} * {axes.matching} % {LAST_KEY}"
            if axes.matching
            else f"{domain} + {counted} % {LAST_KEY - domain}"
        )
        drawn.append(Spread(others, copies * (1 + rows // (LAST_KEY - domain))))
    if axes.skew == "hot":
        value = pick(rng, (str(hot), *(f"{hot} + g % {count} * {axes.matching}" for count in (4, 8))))
        drawn[0] = Spread(f"CASE WHEN g % {often} = 0 THEN {drawn[0].sql} ELSE {value} END", large)
    if axes.skew == "unsplittable":
        drawn[1] = Spread(f"CASE WHEN g % {often} = 0 THEN {drawn[1].sql} ELSE {hot} END", middling)
    return tuple(drawn)


def contents(rng: random.Random, axes: Axes, number: int, rows: int, spread: Spread, nulls: int) -> tuple[Content, ...]:
    """Return the columns: two keys, the row's number, two correlated columns, and long text."""
    key = axes.key.types[number % len(axes.key.types)]
    twisted = pick(rng, ("0", "0", "g % 3 / 2"))  # so that the second key distinguishes rows with equal first keys
    wanted = _PARTICIPANTS * axes.memory.bytes if axes.pooled else _WIDE_BYTES
    if axes.skew == "hot" and not axes.pooled:  # narrow rows, so that the skew hash table fits into memory
        wanted = min(wanted, 2 * axes.memory.bytes)
    times = max(1, min(90, wanted // (32 * max(1, rows))))
    long = f"repeat(md5(g::text), {times} + g % 3)"
    if times < 90 and chance(rng, 40):  # every tenth row is toasted or compressed
        long = f"CASE WHEN g % 10 = 0 THEN repeat(md5(g::text), 90) ELSE {long} END"
    return (
        _content("k1", key, _with_nulls(spread.sql, nulls), spread.fan, LAST_KEY, nullable=nulls > 0),
        _content("k2", INT4, f"({spread.sql}) % 10 + {twisted}", rows, 11),
        Content(Column("@i1", "i1", INT4, 1, max(2, rows)), INT4.embed("g"), unique=True),
        _content("i2", INT4, "g % 20", rows // 20 + 1, 20),
        _content("i3", INT4, "g % 20 / 4", rows // 5 + 1, 5),
        Content(Column("@w1", "w1", axes.key.text, rows, rows, nullable=True, wide=True), long, unique=False),
    )


def _content(name: str, type_: Type, value: str, fan: int, domain: int, *, nullable: bool = False) -> Content:
    column = Column(f"@{name}", name, type_, max(1, fan), domain, nullable=nullable)
    return Content(column, type_.embed(value), unique=False)


def _with_nulls(sql: str, percent: int) -> str:
    if percent == 100:
        return "NULL::int4"
    return f"CASE WHEN g % 100 >= {percent} THEN {sql} END" if percent else sql


def _scheme(rng: random.Random, columns: tuple[Content, ...], axes: Axes, scale: Scale) -> Scheme:
    """Return a scheme over a key with the same type in all tables.

    Different types would prevent partitionwise joins.
    """
    name = "k2" if axes.key.crosses else "k1"
    column = next(content.column for content in columns if content.column.name == name)
    return whole(draw_scheme(rng, (column,), max(2, scale.partitions // 4)))
