"""Changes of rows without COPY, and queries that check the rows between changes.

Changes are INSERT, UPDATE, DELETE and MERGE statements. Queries are counts, sums of integers, ordered samples, rows per
partition, and the audit table.
"""

import random
from collections.abc import Callable

from fuzz.generators.choices import Weighted, between, pick
from fuzz.generators.copy_batches.table import BAD_KEY, ROLE_EXPRESSIONS, CopyState, CopyTable, Family, Made, Role
from oracles.model.case import Kind, Step


def literal_key(key: int | None) -> str:
    """Return an integer or NULL as an SQL literal."""
    return "NULL" if key is None else str(key)


def insert_columns(table: CopyTable) -> tuple[tuple[str, str], ...]:
    """Return the columns with a role, each with an SQL expression over the row number {id}."""
    keys = ", ".join(literal_key(key) for key in table.keys)
    expressions = ROLE_EXPRESSIONS | {Role.KEY: f"(ARRAY[{keys}]::int4[])[1 + {{id}} % {len(table.keys)}]"}
    return tuple((column.name, expressions[column.role]) for column in table.columns if column.role in expressions)


def insert_select(table: CopyTable, first: str, last: str) -> str:
    """Return an INSERT of numbered rows. `first` and `last` are SQL expressions."""
    columns = insert_columns(table)
    values = ", ".join(expression.format(id="g") for _, expression in columns)
    names = ", ".join(name for name, _ in columns)
    return f"INSERT INTO {table.name} ({names}) SELECT {values} FROM generate_series({first}, {last}) g"


def insert_values(table: CopyTable, first: int, count: int) -> str:
    """Return an INSERT with a VALUES list of `count` rows."""
    columns = insert_columns(table)
    names = ", ".join(name for name, _ in columns)
    rows = (
        "(" + ", ".join(expression.format(id=number) for _, expression in columns) + ")"
        for number in range(first, first + count)
    )
    return f"INSERT INTO {table.name} ({names}) VALUES {', '.join(rows)}"


def _wide_insert(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    count = pick(rng, (1, 10, 33, 65, 100))
    step = Step(insert_values(table, state.next_id, count), tags=("change.insert_values",))
    return (step,), state.after_rows(count)


def _series_insert(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    count = pick(rng, (5, 32, 97))
    sql = insert_select(table, str(state.next_id), str(state.next_id + count - 1))
    return (Step(sql, tags=("change.insert_select",)),), state.after_rows(count)


def _update(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    if table.family is Family.VIEW or table.remote:  # an update must not move rows to a foreign partition
        return _wide_insert(rng, state, table)
    change = pick(rng, ("pad = 'u' || left(pad, 50)", "pad = NULL", _new_key(rng, table)))
    return (Step(f"UPDATE {table.name} SET {change} WHERE id % {between(rng, 2, 9)} = 1"),), state


def _new_key(rng: random.Random, table: CopyTable) -> str:
    return f"k = {literal_key(pick(rng, table.keys))}"


def _delete(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    if table.family is Family.VIEW:
        return _series_insert(rng, state, table)
    return (Step(f"DELETE FROM {table.name} WHERE id % {between(rng, 2, 9)} = 0"),), state


def _merge(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    if table.family is Family.VIEW or table.remote:
        return _wide_insert(rng, state, table)
    columns = insert_columns(table)
    names = ", ".join(name for name, _ in columns)
    values = ", ".join(expression.format(id="i") for _, expression in columns)
    first = max(1, state.next_id - 20)
    sql = (
        f"MERGE INTO {table.name} t USING generate_series({first}, {state.next_id + 19}) i ON t.id = i"
        f" WHEN MATCHED AND i % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET pad = 'merged'"
        f" WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({values})"
    )
    return (Step(sql, tags=("change.merge",)),), state.after_rows(20)


def _upsert(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    if not table.upserts:
        return _series_insert(rng, state, table)
    insert = insert_select(table, str(max(1, state.next_id - 9)), str(state.next_id + 9))
    return (Step(f"{insert} ON CONFLICT DO NOTHING", tags=("change.upsert",)),), state.after_rows(10)


CHANGES: Weighted[Callable[[random.Random, CopyState, CopyTable], Made]] = Weighted(
    (3, _wide_insert),
    (3, _series_insert),
    (4, _update),
    (3, _delete),
    (2, _merge),
    (2, _upsert),
)


def make_change(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a change of the table's rows."""
    return CHANGES.pick(rng)(rng, state, table)


def make_returning(rng: random.Random, state: CopyState, table: CopyTable) -> tuple[str, CopyState] | None:
    """Return a change with RETURNING id, for COPY (...) TO; None for views, whose triggers return other rows."""
    if table.family is Family.VIEW:
        return None
    if rng.randrange(2):
        return f"DELETE FROM {table.name} WHERE id % 7 = 2 RETURNING id", state
    insert = insert_select(table, str(state.next_id), str(state.next_id + 29))
    return f"{insert} RETURNING id", state.after_rows(30)


def refused_insert(table: CopyTable, first: int) -> str | None:
    """Return an INSERT whose last row is refused, or None if the table has no immediate check."""
    if table.skips_rows:
        return None
    if "check" in table.checked or not table.takes_any_key:
        return f"INSERT INTO {table.name} (id, k) VALUES ({first}, {_good(table)}), ({first + 1}, {BAD_KEY})"
    return None


def _good(table: CopyTable) -> str:
    return literal_key(table.keys[0])


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
