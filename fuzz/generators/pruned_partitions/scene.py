"""Scene of `pruned_partitions`: two partition trees, the rows for both in a plain table, and a small table of keys."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from fuzz.generators.choices import Weighted, between, chance, pick, shuffled, some
from fuzz.generators.generator import Scale
from fuzz.generators.pruned_partitions.keys import IDENTITIES, Key, KeyColumn, draw_columns
from fuzz.generators.pruned_partitions.levels import Level, Part, draw_level, varied
from fuzz.generators.sql.partitions import attached
from oracles.model.case import Step

ROWS = "r"  # the plain table
DRIVER = "d"  # the small table
_DRIVING = 12  # upper bound of its rows


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
    steps: tuple[Step, ...]

    @property
    def names(self) -> str:
        """Return the list of columns of each table."""
        return ", ".join(("id", *(column.name for column in self.columns), "v"))


def draw_scene(rng: random.Random, scale: Scale) -> Scene:
    """Return a scene."""
    columns = draw_columns(rng, between(rng, 2, 4))
    first = draw_level(rng, "p", columns, scale.partitions * 2)
    second = varied(rng, first, "q") if chance(rng, 65) else draw_level(rng, "q", columns, scale.partitions)
    trees = tuple(_tree(rng, level, columns) for level in (first, second))
    rows = between(rng, scale.rows // 3, scale.rows)
    driving = min(_DRIVING, max(3, rows // 8))
    steps = (*_setup(columns), *_plain(rng, columns, rows, driving), *_filled(rng, columns, trees))
    return Scene(columns, trees, rows, driving, steps)


def _setup(columns: tuple[KeyColumn, ...]) -> Iterator[Step]:
    yield from map(Step, dict.fromkeys(sql for column in columns for sql in column.kind.setup))
    for name, volatility in zip(IDENTITIES, ("STABLE", "VOLATILE"), strict=True):
        yield Step(
            f"CREATE FUNCTION {name}(anyelement) RETURNS anyelement LANGUAGE plpgsql {volatility} PARALLEL SAFE"
            " AS 'BEGIN RETURN $1; END'"
        )


def _declared(columns: tuple[KeyColumn, ...]) -> list[str]:
    return ["id int4", *(f"{column.name} {column.kind.type.declaration}" for column in columns), "v int4"]


def _plain(rng: random.Random, columns: tuple[KeyColumn, ...], rows: int, driving: int) -> Iterator[Step]:
    for name, count in ((ROWS, rows), (DRIVER, driving)):
        values = ", ".join(column.kind.type.embed(_spread(rng, column)) for column in columns)
        yield Step(f"CREATE TABLE {name} ({', '.join(_declared(columns))})")
        yield Step(f"INSERT INTO {name} SELECT g, {values}, g * 7 % 10 FROM generate_series(1, {count}) AS g")
        if chance(rng, 70):
            yield Step(f"ANALYZE {name}")


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
    whole = [_indexed(rng, level, columns) for _ in range(between(rng, 0, 2))]
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
