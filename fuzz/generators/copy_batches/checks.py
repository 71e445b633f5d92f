"""Queries between the changes: counts, sums of integers, ordered samples, rows per partition, the audit table."""

import random
from collections.abc import Callable

from fuzz.generators.choices import Weighted, between, pick
from fuzz.generators.copy_batches.table import CopyState, CopyTable, Family, Role
from oracles.model.case import Kind, Step

AUDIT_CHECK = 'SELECT what, count(*), sum(n), sum(total) FROM audit GROUP BY what ORDER BY what COLLATE "C"'


def _totals(rng: random.Random, state: CopyState, table: CopyTable) -> Step:
    sql = f"SELECT count(*), count(k), sum(id), min(id), max(id), sum(k) FROM {table.name}"
    return Step(sql, Kind.QUERY)


def _lengths(rng: random.Random, state: CopyState, table: CopyTable) -> Step:
    sql = f'SELECT count(pad), sum(length(pad)), max(length(pad)), min(left(pad, 9) COLLATE "C") FROM {table.name}'
    return Step(sql, Kind.QUERY)


def _sample(rng: random.Random, state: CopyState, table: CopyTable) -> Step:
    columns = ", ".join(_shown(column.name, column.role) for column in table.columns[:8])
    where = pick(rng, ("", f" WHERE id % {between(rng, 2, 9)} = 0", f" WHERE id > {state.next_id // 2}"))
    order = pick(rng, ("id", "id DESC"))
    sql = f"SELECT id, {columns} FROM {table.name}{where} ORDER BY {order} LIMIT {between(rng, 1, 12)}"
    return Step(sql, Kind.QUERY, ordered=True)


def _shown(name: str, role: Role) -> str:
    return f"left({name}, 30) AS {name}" if role is Role.PAD else name


def _by_key(rng: random.Random, state: CopyState, table: CopyTable) -> Step:
    sql = f"SELECT k, count(*), sum(id) FROM {table.name} GROUP BY k ORDER BY k NULLS FIRST"
    return Step(sql, Kind.QUERY, ordered=True)


def _by_partition(rng: random.Random, state: CopyState, table: CopyTable) -> Step:
    if table.family is not Family.PARTITIONED:
        return _by_key(rng, state, table)
    sql = f"SELECT tableoid::regclass::text, count(*), sum(id) FROM {table.name} GROUP BY 1"
    return Step(sql, Kind.QUERY)


def _between(rng: random.Random, state: CopyState, table: CopyTable) -> Step:
    low = between(rng, 1, state.next_id)
    sql = f"SELECT count(*), sum(id), sum(length(pad)) FROM {table.name} WHERE id BETWEEN $1 AND $2"
    return Step(sql, Kind.QUERY, params=(str(low), str(low + pick(rng, (0, 5, 60)))))


def _one_key(rng: random.Random, state: CopyState, table: CopyTable) -> Step:
    key = pick(rng, table.keys)
    condition = "k IS NULL" if key is None else f"k = {key}"
    return Step(f"SELECT id, k, length(pad) FROM {table.name} WHERE {condition}", Kind.QUERY)


def _audit(rng: random.Random, state: CopyState, table: CopyTable) -> Step:
    return Step(AUDIT_CHECK, Kind.QUERY, ordered=True)


CHECKS: Weighted[Callable[[random.Random, CopyState, CopyTable], Step]] = Weighted(
    (6, _totals),
    (3, _lengths),
    (4, _sample),
    (3, _by_key),
    (3, _by_partition),
    (3, _between),
    (2, _one_key),
    (3, _audit),
)


def make_check(rng: random.Random, state: CopyState, table: CopyTable) -> Step:
    """Return a query over the table or the audit table."""
    return CHECKS.pick(rng)(rng, state, table)
