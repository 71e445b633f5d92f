"""Scene of `pruned_partitions`: two partition trees, the rows for both in a plain table, and a small table of keys.

Each column has a few common values: values of bounds and their neighbours. Most of their combinations have a row. So
equalities with values of different outer rows select some rows, and other rows in other partitions.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, prod

from fuzz.generators.choices import Weighted, between, chance, pick, shuffled, some
from fuzz.generators.generator import Scale
from fuzz.generators.pruned_partitions.keys import IDENTITIES, Key, KeyColumn, draw_columns
from fuzz.generators.pruned_partitions.levels import Level, Part, draw_level, varied
from fuzz.generators.sql.partitions import attached
from oracles.model.case import Step

ROWS = "r"  # the plain table
DRIVER = "d"  # the small table
_DRIVING = 12  # upper bound of its rows
_FEW = 3  # partitions: with assertions, the executor has a hash table for the targets of changes from 4 on
_COMMON = {2: 8, 3: 5, 4: 4}  # common values of a column, by the number of columns

Common = dict[str, tuple[int, ...]]  # column → integers of many rows


@dataclass(frozen=True)
class Tree:
    """A partitioned table."""

    name: str
    level: Level
    indexes: tuple[Step, ...]
    orders: tuple[tuple[str, ...], ...] = ()  # columns by which indexes of the whole tree are sorted

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """Return the keys of all levels, those of higher levels first and more often."""
        keys = [key for level in self.level.levels for key in level.keys]
        return (*self.level.keys, *self.level.keys, *dict.fromkeys(keys))

    @cached_property
    def rows(self) -> str:
        """Return a condition for rows of the plain table that fit."""
        return self.level.accepts or "true"


@dataclass(frozen=True)
class Scene:
    """The tables of a case, and the steps that create them."""

    columns: tuple[KeyColumn, ...]
    trees: tuple[Tree, ...]
    rows: int
    driving: int  # rows of the small table
    common: Common
    steps: tuple[Step, ...]

    @property
    def names(self) -> str:
        """Return the list of columns of each table."""
        return ", ".join(("id", *(column.name for column in self.columns), "v"))


def draw_scene(rng: random.Random, scale: Scale) -> Scene:
    """Return a scene."""
    columns = draw_columns(rng, between(rng, 2, 4))
    first = draw_level(rng, "p", columns, scale.partitions * 2)
    limit = pick(rng, (scale.partitions, _FEW))
    second = varied(rng, first, "q") if chance(rng, 55) else draw_level(rng, "q", columns, limit)
    trees = tuple(_tree(rng, level, columns) for level in (first, second))
    rows = between(rng, scale.rows // 3, scale.rows)
    driving = min(_DRIVING, max(3, rows // 8))
    common = _common(rng, columns, trees)
    steps = (*_setup(columns), *_plain(rng, columns, common, rows, driving), *_filled(rng, columns, trees))
    settings = [Step(f"SET {name} = off") for name in _SETTINGS if chance(rng, 30)]
    return Scene(columns, trees, rows, driving, common, (*steps, *settings))


_SETTINGS = ("enable_sort", "enable_bitmapscan", "enable_incremental_sort")


def _common(rng: random.Random, columns: tuple[KeyColumn, ...], trees: tuple[Tree, ...]) -> Common:
    """Return the common values of each column: those of some edges, and neighbours of these."""
    found: dict[KeyColumn, set[int]] = {column: set() for column in columns}
    most = _COMMON[len(columns)]
    for key, value in _edge_values(rng, trees):
        column = key.column
        for near in (value, value + pick(rng, (0, 0, 0, 0, -1, 1))):
            if len(found[column]) < most and 0 <= near <= column.kind.largest(column.domain):
                found[column].add(near)
    for column, values in found.items():
        if len(values) < 2:
            values |= {rng.randrange(column.kind.largest(column.domain) + 1) for _ in range(most)}
    return {column.name: tuple(sorted(values)) for column, values in found.items()}


def _edge_values(rng: random.Random, trees: tuple[Tree, ...]) -> Iterator[tuple[Key, int]]:
    """Yield columns that are keys, with the finite values of some edges."""
    levels = [trees[0].level, *(level for tree in trees for level in tree.level.levels)]
    for level in (pick(rng, levels) if number else levels[0] for number in range(_EDGES)):
        for edge in some(rng, level.edges, 8 if level.method == "LIST" else 1):
            pairs = zip(level.keys, edge, strict=True)
            yield from ((key, int(value)) for key, value in pairs if key.form == "{}" and isfinite(value))


_EDGES = 12


def _setup(columns: tuple[KeyColumn, ...]) -> Iterator[Step]:
    yield from map(Step, dict.fromkeys(sql for column in columns for sql in column.kind.setup))
    for name, volatility in zip(IDENTITIES, ("STABLE", "VOLATILE"), strict=True):
        yield Step(
            f"CREATE FUNCTION {name}(anyelement) RETURNS anyelement LANGUAGE plpgsql {volatility} PARALLEL SAFE"
            " AS 'BEGIN RETURN $1; END'"
        )


def _declared(columns: tuple[KeyColumn, ...]) -> list[str]:
    return ["id int4", *(f"{column.name} {column.kind.type.declaration}" for column in columns), "v int4"]


def _plain(
    rng: random.Random, columns: tuple[KeyColumn, ...], common: Common, rows: int, driving: int
) -> Iterator[Step]:
    for name, count in ((ROWS, rows), (DRIVER, driving)):
        combined = min(between(rng, count // 2, count), prod(len(values) for values in common.values()))
        combined = combined if chance(rng, 85) else 0
        step = 2 if name == DRIVER else 0
        yield Step(f"CREATE TABLE {name} ({', '.join(_declared(columns))})")
        if combined:
            yield _inserted(name, _combinations(rng, columns, common, step), columns, 1, combined)
        if combined < count:
            yield _inserted(name, [_spread(rng, column) for column in columns], columns, combined + 1, count)
        if chance(rng, 70):
            yield Step(f"ANALYZE {name}")


def _inserted(name: str, integers: list[str], columns: tuple[KeyColumn, ...], first: int, last: int) -> Step:
    """Return the step that inserts rows with ids in a range, and integers over the row number g."""
    values = ", ".join(column.kind.type.embed(sql) for column, sql in zip(columns, integers, strict=True))
    return Step(f"INSERT INTO {name} SELECT g, {values}, g * 7 % 10 FROM generate_series({first}, {last}) AS g")


def _combinations(rng: random.Random, columns: tuple[KeyColumn, ...], common: Common, step: int) -> list[str]:
    """Return integers over the row number g that combine common values.

    Each column changes `step` times slower than another one; 0: so slowly that all combinations occur.
    """
    integers, period = {}, 1
    for column in shuffled(rng, columns):
        values = common[column.name]
        place = f"g / {period} % {len(values)}" if period > 1 else f"g % {len(values)}"
        integers[column.name] = f"('{{{','.join(map(str, values))}}}'::int4[])[1 + {place}]"
        period *= step or len(values)
    return [integers[column.name] for column in columns]


def _spread(rng: random.Random, column: KeyColumn) -> str:
    """Return integers over the row number g, some of them NULL."""
    domain = column.kind.largest(column.domain) + 1
    sql = _SPREADS.pick(rng).format(domain=domain, value=rng.randrange(domain), factor=pick(rng, (7, 11, 5, 13)))
    nth = pick(rng, (7, 13, 3, 29))
    return f"CASE WHEN g % {nth} <> {rng.randrange(nth)} THEN {sql} END" if chance(rng, 60) else sql


_SPREADS = Weighted(
    (40, "g * {factor} % {domain}"),
    (25, "(g * {factor} + g / {domain}) % {domain}"),
    (15, "g / 20 % {domain}"),  # runs of rows for one partition
    (15, "CASE WHEN g % 3 = 0 THEN g % {domain} ELSE {value} END"),
    (5, "g * g % {domain}"),
)


def _filled(rng: random.Random, columns: tuple[KeyColumn, ...], trees: tuple[Tree, ...]) -> Iterator[Step]:
    names = ", ".join(("id", *(column.name for column in columns), "v"))
    for tree in trees:
        yield from _created(rng, tree.level, columns)
        order = pick(rng, ("", "", f" ORDER BY {columns[0].name}, id"))
        early = tree.indexes if chance(rng, 30) else ()
        yield from early
        yield Step(f"INSERT INTO {tree.name} ({names}) SELECT {names} FROM {ROWS} WHERE {tree.rows}{order}")
        yield from () if early else tree.indexes
        if chance(rng, 60):
            yield Step(f"ANALYZE {tree.name}")


def _created(rng: random.Random, top: Level, columns: tuple[KeyColumn, ...]) -> Iterator[Step]:
    yield Step(f"CREATE TABLE {top.name} ({', '.join(_declared(columns))}) {top.clause}")
    for level in top.levels:
        for part in level.parts:
            yield from _partition(rng, level.name, part, columns)


def _partition(rng: random.Random, parent: str, part: Part, columns: tuple[KeyColumn, ...]) -> Iterator[Step]:
    below = f" {part.level.clause}" if part.level else ""
    bound = part.piece.bound
    if not chance(rng, 25):
        yield Step(f"CREATE TABLE {part.name} PARTITION OF {parent} {bound}{below}")
        return
    own = [*shuffled(rng, _declared(columns)), "gone int4"]
    create = f"CREATE TABLE {part.name} ({', '.join(shuffled(rng, own))}){below}"
    yield from map(Step, attached(create, part.name, parent, bound))


def _tree(rng: random.Random, level: Level, columns: tuple[KeyColumn, ...]) -> Tree:
    """Return the tree with indexes of the whole table and of single leaves."""
    keys = tuple(key.clause for key in level.keys)
    whole = [(*keys, "id")] if chance(rng, 65) else []  # so that partitions in the order of their bounds are sorted
    whole += [_indexed(rng, level, columns) for _ in range(between(rng, 0, 1 if whole else 2))]
    single = [(leaf.name, _indexed(rng, level, columns)) for leaf in some(rng, list(level.leaves), between(rng, 0, 2))]
    indexes = [(level.name, items) for items in whole] + single
    steps = tuple(Step(f"CREATE INDEX ON {table} ({', '.join(items)})") for table, items in indexes)
    orders = tuple(items for items in whole if all(item.isidentifier() for item in items))
    return Tree(level.name, level, steps, orders)


def _indexed(rng: random.Random, level: Level, columns: tuple[KeyColumn, ...]) -> tuple[str, ...]:
    """Return the items of an index: the keys or another column, often with the column id."""
    keys = tuple(key.clause for key in level.keys)
    single = pick(rng, columns).name
    return pick(rng, ((*keys, "id"), keys, (*keys, "id"), (single, "id"), ("id",), (single,)))
