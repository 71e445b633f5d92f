"""Definitions changed between COPYs: what they do to a table, and to plans that somebody still holds."""

import random
from collections.abc import Callable
from dataclasses import replace

from fuzz.generators.choices import Weighted, chance, pick
from fuzz.generators.copying.table import Column, Family, Made, Role, Scope, Table
from fuzz.generators.copying.values import make_type
from oracles.case import Step


def _step(sql: str) -> Step:
    return Step(sql, tags=("ddl",))


def _add_column(rng: random.Random, scope: Scope, table: Table) -> Made:
    column = Column(f"n{scope.next_name}", make_type(rng))
    scope = scope.named().changed(replace(table, columns=(*table.columns, column)))
    return (_step(f"ALTER TABLE {table.name} ADD COLUMN {column.definition}"),), scope


def _drop_column(rng: random.Random, scope: Scope, table: Table) -> Made:
    droppable = [column for column in table.columns if column.role is Role.DATA]
    if table.fixed or not droppable:
        return _add_index(rng, scope, table)
    gone = pick(rng, droppable)
    kept = tuple(column for column in table.columns if column is not gone)
    return (_step(f"ALTER TABLE {table.name} DROP COLUMN {gone.name}"),), scope.changed(replace(table, columns=kept))


def _add_index(rng: random.Random, scope: Scope, table: Table) -> Made:
    name = f"{table.name}_index_{scope.next_name}"
    steps = (_step(f"CREATE INDEX {name} ON {table.name} ({pick(rng, ('k', 'id', 'k, id'))})"),)
    return (*steps, _step(f"DROP INDEX {name}")) if chance(rng, 30) else steps, scope.named()


def _rewrite(rng: random.Random, scope: Scope, table: Table) -> Made:
    if table.family is Family.PARTITIONED or table.fixed:
        return (_step(f"REINDEX TABLE {table.name}"),), scope
    if table.with_role(Role.GENERATED):
        return (_step(f"ALTER TABLE {table.name} SET (fillfactor = 60)"),), scope
    collation = ' COLLATE "C"' if "COLLATE" in table.with_role(Role.PAD)[0].suffix else ""
    rewriting = f"ALTER COLUMN pad TYPE text{collation} USING pad || ''"
    how = pick(
        rng,
        (rewriting, "SET (fillfactor = 30)", "REPLICA IDENTITY FULL"),
    )
    return (_step(f"ALTER TABLE {table.name} {how}"),), scope


def _truncate(rng: random.Random, scope: Scope, table: Table) -> Made:
    return (_step(f"TRUNCATE {table.name}"),), scope


def _analyze(rng: random.Random, scope: Scope, table: Table) -> Made:
    return (
        _step(pick(rng, ("ANALYZE {name}", "VACUUM {name}", "VACUUM (FREEZE) {name}")).format(name=table.name)),
    ), scope


def _detach(rng: random.Random, scope: Scope, table: Table) -> Made:
    """Detach a partition and drop it, so that plans lose one; keys that it took are kept out from then on."""
    one_key_each = len(table.partitions) == len(table.keys) >= 2
    if table.fixed or table.takes_any_key or not one_key_each:
        return _truncate(rng, scope, table)
    partition = table.partitions[-1]
    left = replace(table, partitions=table.partitions[:-1], keys=table.keys[:-1], leaves=table.leaves - 1)
    detach = _step(f"ALTER TABLE {table.name} DETACH PARTITION {partition}")
    return (detach, _step(f"DROP TABLE {partition}")), scope.changed(left)


DEFINITIONS: Weighted[Callable[[random.Random, Scope, Table], Made]] = Weighted(
    (5, _add_column),
    (4, _drop_column),
    (4, _add_index),
    (3, _rewrite),
    (3, _truncate),
    (2, _analyze),
    (2, _detach),
)


def make_definition(rng: random.Random, scope: Scope, table: Table) -> Made:
    """Return a change of a table's definition. Views are left as they are, and what has a remote counterpart."""
    if table.family is Family.VIEW or table.remote:
        return (), scope
    return DEFINITIONS.pick(rng)(rng, scope, table)
