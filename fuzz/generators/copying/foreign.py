"""Foreign tables and partitions to copy into."""

import random
from dataclasses import replace

from fuzz.generators import loopback
from fuzz.generators.choices import Weighted, pick
from fuzz.generators.copying.table import Column, Family, Role, Table
from fuzz.generators.copying.triggers import make_plain_trigger
from fuzz.generators.copying.values import INT4, TEXT, make_type
from oracles.case import Step

BATCH_SIZES = Weighted((3, 10), (3, 33), (2, 1), (2, 2), (1, 1000))


def make_foreign(rng: random.Random, name: str) -> tuple[Table, tuple[Step, ...]]:
    """Return a foreign table, or a table with foreign partitions, and the steps that make it."""
    columns = (
        Column("id", INT4, Role.ID, nullable=False),
        Column("k", INT4, Role.KEY),
        Column("pad", TEXT, Role.PAD),
        *(Column(f"c{number}", make_type(rng)) for number in range(rng.randrange(3))),
    )
    table = Table(name, columns, remote=True)
    table, statements = pick(rng, (_foreign_table, _foreign_partitions))(rng, table)
    steps = tuple(Step(statement, tags=("foreign",)) for statement in statements)
    if rng.randrange(3):
        return table, steps
    table, triggers = make_plain_trigger(rng, table)
    return table, steps + triggers


def _foreign_table(rng: random.Random, table: Table) -> tuple[Table, tuple[str, ...]]:
    return replace(table, family=Family.FOREIGN), _remote(table, table.name, BATCH_SIZES.pick(rng), "")


def _foreign_partitions(rng: random.Random, table: Table) -> tuple[Table, tuple[str, ...]]:
    """Return list partitions: some local, some foreign, each with a batch size of its own."""
    statements: tuple[str, ...] = (f"CREATE TABLE {table.name} ({_columns(table)}) PARTITION BY LIST (k)",)
    count = rng.randint(2, 4)
    for key in range(count):
        child = f"{table.name}_{key}"
        of = f"PARTITION OF {table.name} FOR VALUES IN ({key})"
        if rng.randrange(3):
            statements += _remote(table, child, BATCH_SIZES.pick(rng), of)
        else:
            statements += (f"CREATE TABLE {child} {of}",)
    keys = tuple(range(count))
    return replace(table, family=Family.PARTITIONED, keys=keys, leaves=count, takes_any_key=False), statements


def _remote(table: Table, name: str, batch_size: int, partition: str) -> tuple[str, ...]:
    """Return statements for a local table, and for a foreign table that leads to it."""
    shape = partition or f"({_columns(table)})"
    return (
        f"CREATE TABLE {name}_there ({_columns(table)})",
        loopback.foreign_table(name, shape, f"{name}_there", f"batch_size '{batch_size}'"),
    )


def _columns(table: Table) -> str:
    return ", ".join(column.definition for column in table.columns)
