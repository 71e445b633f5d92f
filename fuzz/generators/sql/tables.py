"""Random tables over the column templates of a case, and the steps that create, load, index, change and analyze them.

The order of these steps may leave statistics stale.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fuzz.generators.choices import Weighted, between, chance, pick, shuffled, some
from fuzz.generators.sql import tables
from fuzz.generators.sql.columns import ColumnTemplate, Content, content
from fuzz.generators.sql.partitions import Scheme, attached
from fuzz.generators.sql.predicates import predicate
from fuzz.generators.sql.scope import Column, RowSource, Scope
from oracles.model.case import Step

_EDGES = 6
_EQUAL_EDGES = 2  # upper bound, with rare exceptions, of edge rows with one value in a column


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a scene.

    `rows` is an upper bound, because rows that fit no partition are not inserted. `edges` are additional rows at or
    next to partition bounds.
    """

    name: str
    contents: tuple[Content, ...]
    rows: int
    scheme: Scheme | None
    primary: tuple[str, ...] = ()
    edges: int = 0

    @property
    def leaves(self) -> tuple[str, ...]:
        """Return the names of the leaf partitions."""
        return tuple(_leaves(self.name, self.scheme)) if self.scheme else ()

    @property
    def source(self) -> RowSource:
        """Return the table as a source for queries."""
        hints: dict[str, tuple[int, ...]] = {}
        for key in self.scheme.all_keys if self.scheme else ():
            hints[key.sql] = key.hints + hints.get(key.sql, ())
        alike = min(self.edges, _EQUAL_EDGES)
        columns = tuple(
            replace(c.column, hints=hints.get(c.column.sql, ()), fan=c.column.fan + (0 if c.unique else alike))
            for c in self.contents
        )
        keys = self.scheme.all_keys if self.scheme else ()
        fan_of = {column.sql: column for column in columns}
        rows = self.rows + self.edges
        return RowSource(
            self.name,
            columns,
            rows,
            tuple(fan_of.get(key.sql, replace(key, fan=rows)) for key in keys),
            self.leaves,
        )


def draw_table(
    rng: random.Random, name: str, templates: tuple[ColumnTemplate, ...], rows: int, scheme: Scheme | None
) -> Table:
    """Return a table with the columns that the scheme needs, and random others."""
    needed = "".join(key.sql for key in scheme.all_keys) if scheme else ""
    contents = tuple(
        content(rng, template, rows, exact=f"@{template.name}" in needed)
        for template in templates
        if f"@{template.name}" in needed or chance(rng, template.percent)
    )
    edges = between(rng, 1, _EDGES) if chance(rng, 60) else 0
    return Table(name, shuffled(rng, contents), rows, scheme, _primary(rng, contents, scheme), edges)


def _primary(rng: random.Random, contents: tuple[Content, ...], scheme: Scheme | None) -> tuple[str, ...]:
    """Return the columns of a primary key: the partition keys, which it must include, and a unique column.

    Return () if there is no such column, a partition key is nullable, or by chance.
    """
    unique = next((c.column.name for c in contents if c.unique), "")
    filled = {c.column.name for c in contents if not c.column.nullable}
    keys = [key.name for key in scheme.all_keys] if scheme else []
    if not unique or not filled.issuperset(keys) or chance(rng, 40):
        return ()
    return tuple(dict.fromkeys((*keys, unique)))


def _leaves(name: str, scheme: Scheme) -> Iterator[str]:
    for n, partition in enumerate(scheme.partitions, 1):
        if partition.sub:
            yield from _leaves(f"{name}_{n}", partition.sub)
        else:
            yield f"{name}_{n}"


def create(rng: random.Random, table: Table) -> Iterator[Step]:
    """Yield the steps that create a table and its partitions.

    Some partitions are attached, with their columns in a different order.
    """
    contents = table.contents
    declared = [_declaration(c.column) for c in contents]
    gone = chance(rng, 15)
    if gone:
        declared.insert(rng.randrange(len(declared) + 1), "gone int4")
    if table.primary:
        declared.append(f"PRIMARY KEY ({', '.join(table.primary)})")
    clause = f" {table.scheme.clause}" if table.scheme else ""
    yield Step(f"CREATE TABLE {table.name} ({', '.join(declared)}){clause}")
    if gone:
        yield Step(f"ALTER TABLE {table.name} DROP COLUMN gone")
    if table.scheme:
        yield from _partitions(rng, table, table.name, table.scheme)


def _declaration(column: Column) -> str:
    return f"{column.name} {column.type.declaration}{'' if column.nullable else ' NOT NULL'}"


def _partitions(rng: random.Random, table: Table, parent: str, scheme: Scheme) -> Iterator[Step]:
    for n, partition in enumerate(scheme.partitions, 1):
        name = f"{parent}_{n}"
        clause = f" {partition.sub.clause}" if partition.sub else ""
        if chance(rng, 15):
            declared = ["gone text", *(_declaration(c.column) for c in table.contents)]
            create = f"CREATE TABLE {name} ({', '.join(shuffled(rng, declared))}){clause}"
            yield from map(Step, attached(create, name, parent, partition.bound))
        else:
            yield Step(f"CREATE TABLE {name} PARTITION OF {parent} {partition.bound}{clause}")
        if partition.sub:
            yield from _partitions(rng, table, name, partition.sub)


def load(table: Table, first: int, last: int) -> Step:
    """Return the step that inserts the rows `first` to `last` that fit a partition."""
    names = ", ".join(c.column.name for c in table.contents)
    values = ", ".join(f"{c.value} AS {c.column.name}" for c in table.contents)
    rows = f"SELECT {values} FROM generate_series({first}, {last}) AS g"
    return Step(f"INSERT INTO {table.name} ({names}) {_placed(table, rows)}")


def load_edges(rng: random.Random, table: Table) -> Step:
    """Return the step that inserts the edge rows: partition bounds, neighbors of bounds, and NULLs.

    Unique columns continue after the values of the other rows.
    """
    source = table.source
    listed = []
    for n in range(table.edges):
        values = []
        for c, column in zip(table.contents, source.columns, strict=True):
            if c.unique:
                values.append(column.type.literal(table.rows + n + 1))
            elif column.nullable and chance(rng, 25):
                values.append(f"NULL::{column.type.name}")
            else:
                values.append(column.type.literal(_edge(rng, column)))
        listed.append(f"({', '.join(values)})")
    names = ", ".join(c.column.name for c in table.contents)
    rows = f"SELECT * FROM (VALUES {', '.join(listed)}) AS v ({names})"
    return Step(f"INSERT INTO {table.name} ({names}) {_placed(table, rows)}")


def _edge(rng: random.Random, column: Column) -> int:
    if column.hints and chance(rng, 60):
        return max(0, pick(rng, column.hints) - rng.randrange(2))
    return between(rng, 0, column.domain)


def _placed(table: Table, rows: str) -> str:
    accepts = table.scheme.accepts if table.scheme else ""
    return f"SELECT * FROM ({rows}) AS s WHERE {accepts}" if accepts else rows


def index(rng: random.Random, table: Table) -> Step:
    """Return the step that creates an index or statistics object on the table or on one of its first partitions."""
    template = _INDEXES.pick(rng)
    columns = [c.column for c in table.contents if not c.column.wide]
    if "brin" in template:  # these types have no operator class for BRIN
        columns = [column for column in columns if column.family not in ("bool", "pair")]
    keys = some(rng, columns, _INDEXED.pick(rng))
    on = pick(rng, (table.name, table.name, *table.leaves[:2]))
    return Step(template.format(on=on, keys=", ".join(key.name for key in keys), key=keys[0].name))


_INDEXED = Weighted((60, 1), (30, 2), (10, 3))
_INDEXES = Weighted(
    (60, "CREATE INDEX ON {on} ({keys})"),
    (8, "CREATE INDEX ON {on} USING hash ({key})"),
    (8, "CREATE INDEX ON {on} USING brin ({keys})"),
    (8, "CREATE INDEX ON {on} ({keys}) WHERE {key} IS NOT NULL"),
    (8, "CREATE INDEX ON {on} ({key} DESC NULLS LAST) INCLUDE (i2)"),
    (8, "CREATE STATISTICS ON i1, i2 FROM {on}"),
)


_ANALYZED = Weighted((45, "last"), (20, "early"), (20, "partly"), (15, "never"))
# Updates that keep equal values equal.
_SHIFTED = {"int": "{} + 1", "numeric": "{} + 0.5", "date": "{} + 1", "bool": "NOT {}"}


def steps_of(rng: random.Random, table: Table, indexes: int = 2) -> Iterator[Step]:
    """Yield the steps that create, fill, change and analyze a table with at most `indexes` indexes, in random order."""
    analyzed = _ANALYZED.pick(rng)
    yield from tables.create(rng, table)
    wanted = [tables.index(rng, table) for _ in range(rng.randrange(indexes + 1))]
    if chance(rng, 30):
        yield from wanted
        wanted = []
    half = table.rows // 2 if analyzed == "early" or chance(rng, 20) else table.rows
    yield tables.load(table, 1, half)
    if analyzed == "early":
        yield Step(f"ANALYZE {table.name}")
    if half < table.rows:
        yield tables.load(table, half + 1, table.rows)
    if table.edges:
        yield tables.load_edges(rng, table)
    if chance(rng, 20):
        yield _change(rng, table)
    yield from wanted
    if analyzed == "partly" and table.leaves:
        yield Step(f"ANALYZE {pick(rng, table.leaves)}")
    if analyzed == "last":
        yield Step(f"ANALYZE {table.name}")


def _change(rng: random.Random, table: Table) -> Step:
    """Return a step that deletes or updates rows. An update may move rows to another partition."""
    source = table.source
    relation = source.relation("a1")
    scope = Scope((source,)).over((relation,), 1)
    condition = predicate(rng, scope)
    fixed = {*table.primary, *(key.name for key in source.keys if table.scheme and table.scheme.accepts)}
    free = [c.column for c in table.contents if c.column.family in _SHIFTED and c.column.name not in fixed]
    if not free or any(not key.name for key in source.keys) or chance(rng, 50):
        return Step(f"DELETE FROM {relation.sql} WHERE {condition}")
    column = pick(rng, free)
    value = _SHIFTED[column.family].format(column.name)
    return Step(f"UPDATE {relation.sql} SET {column.name} = {value} WHERE {condition}")
