"""The steps of a scene for one table: load, change, index and analyze, in an order that may leave statistics stale."""

import random
from collections.abc import Iterator

from fuzz.generators.choices import Weighted, chance, pick
from fuzz.generators.sql import tables
from fuzz.generators.sql.predicates import predicate
from fuzz.generators.sql.scope import Scope
from fuzz.generators.sql.tables import Table
from oracles.model.case import Step

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
