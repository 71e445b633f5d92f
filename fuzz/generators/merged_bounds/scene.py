"""Tables whose partition bounds differ: their points, their rows, and the steps that create them."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from fuzz.generators.choices import Weighted, between, chance, pick, shuffled, some
from fuzz.generators.generator import Scale
from fuzz.generators.merged_bounds.bounds import Bounds, Point
from fuzz.generators.merged_bounds.layout import NOBODY, Layout, draw_bounds, draw_layout
from fuzz.generators.sql.partitions import attached
from fuzz.generators.sql.scope import Column, RowSource
from fuzz.generators.sql.sqltypes import DATE, INT2, INT4, INT8, NUMERIC, TEXT, UUID, VARCHAR, Type
from oracles.model.case import Step

_MOVES = 2  # copies of a point after rows have moved, for each copy before


@dataclass(frozen=True, slots=True)
class Key:
    """A key column of all tables of a case, and the expression over it that partitions them; @ is the relation."""

    name: str
    type: Type
    sql: str
    result: Type  # type of the expression

    @property
    def plain(self) -> bool:
        """Return whether the expression is the column itself."""
        return self.sql == f"@{self.name}"


_TYPES = Weighted((40, INT4), (16, TEXT), (12, DATE), (10, NUMERIC), (8, INT8), (6, VARCHAR), (4, INT2), (4, UUID))
_OTHER_TYPES = {INT4: INT8, INT8: INT4, INT2: INT4, TEXT: VARCHAR, VARCHAR: TEXT}
# These expressions embed the same integers as the column.
_EXPRESSIONS = {
    INT4: ("(abs({}))", INT4),
    INT8: ("(abs({}))", INT8),
    NUMERIC: ("(abs({}))", NUMERIC),
    TEXT: ("(lower({}))", TEXT),
    DATE: ("(({} - DATE '2024-01-01'))", INT4),
}


def _key(rng: random.Random, name: str) -> Key:
    type_ = _TYPES.pick(rng)
    template, result = _EXPRESSIONS[type_] if type_ in _EXPRESSIONS and chance(rng, 12) else ("{}", type_)
    return Key(name, type_, template.format(f"@{name}"), result)


@dataclass(frozen=True)
class Table:
    """A table. Row g has the keys of point g modulo the number of points."""

    name: str
    keys: tuple[Key, ...]
    bounds: Bounds | None
    points: tuple[Point, ...]
    rows: int
    changed: bool = False  # whether statements move its rows

    @cached_property
    def fan(self) -> int:
        """Return the maximum number of rows with equal keys."""
        return self._fan(tuple(range(len(self.keys))))

    def _fan(self, columns: tuple[int, ...]) -> int:
        counts = Counter(tuple(point[column] for column in columns) for point in self.points)
        repeats = -(-self.rows // max(1, len(self.points)))
        return max(1, max(counts.values(), default=1) * repeats * (_MOVES if self.changed else 1))

    @cached_property
    def source(self) -> RowSource:
        """Return the table as a source for queries."""
        columns, keys = [], []
        for n, key in enumerate(self.keys):
            marks = self.bounds.marks() if self.bounds else ()
            hints = tuple(sorted({m for mark in marks if (m := mark.get(n)) is not None}))
            top = max(hints, default=20) + 2
            column = Column(f"@{key.name}", key.name, key.type, self._fan((n,)), top, nullable=True, hints=hints)
            columns.append(column)
            keys.append(column if key.plain else replace(column, sql=key.sql, name="", type=key.result))
        others = (
            Column("@i1", "i1", INT4, 1, max(2, self.rows)),
            Column("@i2", "i2", INT4, max(1, self.rows), 5),
            Column("@t1", "t1", TEXT, max(1, self.rows), 11),
        )
        return RowSource(self.name, (*columns, *others), max(1, self.rows), tuple(keys))

    def value(self, key: int, number: str) -> str:
        """Return SQL for a key of the row whose number is an integer expression."""
        values = ", ".join("NULL" if point[key] is None else str(point[key]) for point in self.points)
        return self.keys[key].type.embed(f"(ARRAY[{values}]::int4[])[({number}) % {len(self.points)} + 1]")


@dataclass(frozen=True, slots=True)
class Scene:
    """The tables of a case, and their common keys.

    `remaps` and `defaults` prevent the constructs of two known faults of PostgreSQL (trees.Allowed).
    """

    tables: tuple[Table, ...]
    keys: tuple[Key, ...]
    remaps: bool
    defaults: bool
    matching: bool

    @property
    def plain(self) -> bool:
        """Return whether all keys are columns themselves."""
        return all(key.plain for key in self.keys)

    @property
    def joins_in_any_order(self) -> bool:
        """Return whether three tables can be joined by USING in any order and with full joins."""
        return len(self.tables) > 2 and self.plain and not self.remaps

    @property
    def sources(self) -> tuple[RowSource, ...]:
        """Return the tables as sources for queries."""
        return tuple(table.source for table in self.tables)


_TABLES = Weighted((16, 2), (48, 3), (23, 4), (13, 5))
_KEYS = Weighted((46, 1), (40, 2), (14, 3))


def draw_scene(rng: random.Random, scale: Scale) -> Scene:
    """Return two to five tables whose bounds are variants of one layout."""
    count = max(2, min(_TABLES.pick(rng), scale.relations))
    keys = tuple(_key(rng, f"k{n + 1}") for n in range(_KEYS.pick(rng)))
    layout = draw_layout(rng, len(keys), count, max(2, scale.partitions))
    drawn = [_bounds(rng, layout, n) for n in range(count)]
    pool = _pool(rng, [bounds for bounds in drawn if bounds], len(keys))
    changed = chance(rng, 35)
    tables = tuple(
        _table(rng, f"r{n + 1}", _retyped(rng, keys), bounds, pool, scale.rows, changed=changed and n == 0)
        for n, bounds in enumerate(drawn)
    )
    levels = layout.levels
    return Scene(
        tables,
        keys,
        remaps=any(level.remaps for level in levels),
        defaults=any(level.owner != NOBODY for level in levels),
        matching=layout.matching,
    )


def _bounds(rng: random.Random, layout: Layout, table: int) -> Bounds | None:
    return None if table > 1 and chance(rng, 6) else draw_bounds(rng, layout, table)


def _retyped(rng: random.Random, keys: tuple[Key, ...]) -> tuple[Key, ...]:
    """Return the keys, rarely with one of another type, which prevents partition-wise joins."""
    if not chance(rng, 4):
        return keys
    n = rng.randrange(len(keys))
    other = _OTHER_TYPES.get(keys[n].type)
    if other is None or not keys[n].plain:
        return keys
    return (*keys[:n], replace(keys[n], type=other, result=other), *keys[n + 1 :])


def _pool(rng: random.Random, drawn: list[Bounds], columns: int) -> tuple[Point, ...]:
    """Return points exactly at the bounds of all tables, just below them and just above, and others near them."""
    marks = [mark for bounds in drawn for mark in bounds.marks()]
    near = [
        sorted({m + by for mark in marks if (m := mark.get(c)) is not None for by in (-1, 0, 1) if m + by >= 0})
        or list(range(8))
        for c in range(columns)
    ]
    distinct = [dict(mark) for mark in dict.fromkeys(tuple(mark.items()) for mark in marks)]
    at_bounds = some(rng, [(mark, by) for mark in distinct for by in (0, -1, 1)], _AT_BOUNDS)
    others = ((pick(rng, marks) if marks and chance(rng, 60) else {}, 0) for _ in range(between(rng, 20, 80)))
    return tuple(dict.fromkeys(_point(rng, near, mark, by) for mark, by in (*at_bounds, *others)))


_AT_BOUNDS = 100  # largest number of points at bounds, in any order


def _point(rng: random.Random, near: list[list[int]], mark: dict[int, int | None], by: int) -> Point:
    """Return a point with the values of a mark, the last of which is changed."""
    point: list[int | None] = [pick(rng, values) for values in near]
    for column, value in mark.items():
        point[column] = value
    if mark and (value := point[max(mark)]):
        point[max(mark)] = value + by
    if chance(rng, 6):
        point[rng.randrange(len(near))] = None
    return tuple(point)


_REPEATS = Weighted((40, 1), (28, 2), (17, 4), (10, 8), (5, 16))


def _table(
    rng: random.Random, name: str, keys: tuple[Key, ...], bounds: Bounds | None, pool: tuple[Point, ...], most: int,
    *, changed: bool,
) -> Table:  # fmt: skip
    wanted = some(rng, pool, len(pool) * pick(rng, (10, 8, 10, 5)) // 10)
    points = tuple(point for point in wanted if bounds is None or bounds.fits(point))
    rows = 0 if chance(rng, 4) else min(2 * most, len(points) * _REPEATS.pick(rng))
    return Table(name, keys, bounds, points, rows, changed)


def steps_of(rng: random.Random, table: Table) -> Iterator[Step]:
    """Yield the steps that create, fill, index and analyze a table."""
    clause = f" {_clause(table, table.bounds)}" if table.bounds else ""
    yield Step(f"CREATE TABLE {table.name} ({', '.join(_declared(table))}){clause}")
    if table.bounds:
        yield from _partitions(rng, table, table.name, table.bounds)
    if table.rows:
        values = ", ".join(table.value(n, "g") for n in range(len(table.keys)))
        yield Step(
            f"INSERT INTO {table.name} ({', '.join(key.name for key in table.keys)}, i1, i2, t1) "
            f"SELECT {values}, g, g % 5, 't' || g % 11 FROM generate_series(0, {table.rows - 1}) AS g"
        )
    for keys in some(rng, _indexed(table), rng.randrange(3)):
        yield Step(f"CREATE INDEX ON {table.name} ({keys})")
    if chance(rng, 80):
        yield Step(f"ANALYZE {table.name}")


def _indexed(table: Table) -> tuple[str, ...]:
    keys = [key.sql.replace("@", "") for key in table.keys]
    return (", ".join(keys), keys[0], keys[-1], f"{keys[0]}, i1", "i1", "i2")


def _clause(table: Table, bounds: Bounds) -> str:
    keys = ", ".join(table.keys[column].sql.replace("@", "") for column in bounds.columns)
    return f"PARTITION BY {bounds.method} ({keys})"


def _declared(table: Table) -> list[str]:
    return [*(f"{key.name} {key.type.declaration}" for key in table.keys), "i1 int4", "i2 int4", 't1 text COLLATE "C"']


def _partitions(rng: random.Random, table: Table, parent: str, bounds: Bounds) -> Iterator[Step]:
    for n, part in enumerate(bounds.parts, 1):
        name = f"{parent}_{n}"
        bound = part.bound.sql([table.keys[column].result for column in bounds.columns])
        clause = f" {_clause(table, part.sub)}" if part.sub else ""
        if chance(rng, 10):
            declared = shuffled(rng, ["gone text", *_declared(table)])
            create = f"CREATE TABLE {name} ({', '.join(declared)}){clause}"
            yield from map(Step, attached(create, name, parent, bound))
        else:
            yield Step(f"CREATE TABLE {name} PARTITION OF {parent} {bound}{clause}")
        if part.sub:
            yield from _partitions(rng, table, name, part.sub)
