"""COPY TO STDOUT of a table, some of its columns, a query, a partition, or a change with RETURNING."""

import random
from collections.abc import Callable

from fuzz.generators.choices import Weighted, between, chance, pick, some
from fuzz.generators.copy_batches.changes import make_returning
from fuzz.generators.copy_batches.options import make_output_options
from fuzz.generators.copy_batches.table import CopyState, CopyTable, Family
from oracles.model.case import Kind, Step


def _names(table: CopyTable) -> tuple[str, ...]:
    return tuple(column.name for column in table.copied)


def _query(rng: random.Random, table: CopyTable, names: tuple[str, ...]) -> str:
    where = pick(rng, ("", " WHERE id % 4 = 1", " WHERE k IS NOT NULL"))
    return f"(SELECT {', '.join(names)} FROM {table.name}{where} ORDER BY id)"


def _of_table(rng: random.Random, state: CopyState, table: CopyTable) -> tuple[str, tuple[str, ...], bool]:
    names = _names(table)
    if table.family is not Family.PLAIN:  # PostgreSQL 17 copies other relations from a query only
        return _query(rng, table, names), names, True
    if chance(rng, 50):
        return table.name, names, False
    names = tuple(some(rng, names, between(rng, 1, len(names))))
    return f"{table.name} ({', '.join(names)})", names, False


def _of_query(rng: random.Random, state: CopyState, table: CopyTable) -> tuple[str, tuple[str, ...], bool]:
    names = tuple(some(rng, _names(table), between(rng, 1, len(table.copied))))
    return _query(rng, table, names), names, True


def _of_groups(rng: random.Random, state: CopyState, table: CopyTable) -> tuple[str, tuple[str, ...], bool]:
    query = f"(SELECT k, count(*) AS n, sum(id) AS s FROM {table.name} GROUP BY k ORDER BY k NULLS LAST)"
    return query, ("k", "n", "s"), True


def _of_partition(rng: random.Random, state: CopyState, table: CopyTable) -> tuple[str, tuple[str, ...], bool]:
    if not table.partitions:
        return _of_table(rng, state, table)
    return pick(rng, table.partitions), _names(table), False


def _of_join(rng: random.Random, state: CopyState, table: CopyTable) -> tuple[str, tuple[str, ...], bool]:
    other = pick(rng, state.tables)
    query = f"(SELECT a.id, b.id AS other FROM {table.name} a JOIN {other.name} b ON b.id = a.id + 1 ORDER BY a.id)"
    return query, ("id", "other"), True


SOURCES: Weighted[Callable[[random.Random, CopyState, CopyTable], tuple[str, tuple[str, ...], bool]]] = Weighted(
    (4, _of_table),
    (4, _of_query),
    (2, _of_groups),
    (2, _of_partition),
    (2, _of_join),
)


def make_copy_out(rng: random.Random, state: CopyState, table: CopyTable) -> tuple[Step, CopyState]:
    """Return a COPY TO STDOUT, and the state after it. A change with RETURNING uses row numbers of the state."""
    if chance(rng, 15) and (returning := make_returning(rng, state, table)):
        query, state = returning
        options = make_output_options(rng, ("id",), ordered=False)
        step = Step(f"COPY ({query}) TO STDOUT{options.sql()}", Kind.COPY_OUT, tags=("copy.out", "copy.out.returning"))
        return step, state
    source, names, ordered = SOURCES.pick(rng)(rng, state, table)
    options = make_output_options(rng, names, ordered=ordered)
    tags = ("copy.out", f"copy.out.{options.format}")
    return Step(f"COPY {source} TO STDOUT{options.sql()}", Kind.COPY_OUT, ordered=ordered, tags=tags), state
