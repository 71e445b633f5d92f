"""Generator `set_operations`: unions, intersections and differences of indexed tables, with and without an order."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fuzz.generators.choices import Stream, Weighted, another, begin, between, chance, pick, shuffled, some
from fuzz.generators.generator import Generator, Scale
from fuzz.generators.sql.digest import digest
from fuzz.generators.sql.predicates import where
from fuzz.generators.sql.queries import SORT_DIRECTIONS
from oracles.model.case import Case, Kind, Step

# Columns of each table with their values for row g. No two equal values of a column can be distinguished.
_COLUMNS = {
    "i": ("int4", "g % {repeat}"),
    "l": ("int8", "(g * 7) % {repeat}"),
    "n": ("numeric(8, 2)", "(g % {repeat}) / 4.0"),
    "t": ('text COLLATE "C"', "'v' || g % {repeat}"),
    "d": ("date", "date '2024-01-01' + g % {repeat}"),
}
_LITERALS = {
    "i": "{}::int4", "l": "{}::int8", "n": "{}::numeric(8, 2)", "t": "'v{}'::text", "d": "date '2024-01-01' + {}"
}  # fmt: skip
_TABLES = Weighted((50, 2), (35, 3), (15, 4))
_BRANCHES = Weighted((55, 2), (28, 3), (12, 4), (5, 6))
_WIDTH = Weighted((30, 1), (45, 2), (20, 3), (5, 5))
_OPERATORS = Weighted(
    (26, "UNION ALL"), (20, "UNION"), (14, "INTERSECT"), (14, "EXCEPT"), (13, "INTERSECT ALL"), (13, "EXCEPT ALL")
)
_CONDITIONS = Weighted((40, 0), (45, 1), (15, 2))
_COMPARISONS = Weighted((25, "="), (25, "<"), (20, ">="), (15, "<>"), (15, "IS DISTINCT FROM"))
_SETTINGS = ("SET enable_hashagg = off", "SET enable_sort = off", "SET enable_incremental_sort = off")


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the scene, and the number of values that its columns repeat."""

    name: str
    repeat: int


class SetOperations(Generator):
    """Set operations over two to four indexed tables of equal columns, whose values repeat and overlap."""

    name: ClassVar[str] = "set_operations"
    cpu_seconds: ClassVar[float] = 0.7
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "indexes",
        "small_memory",
        "indexes+small_memory",
        "parallel",
        "parallel+indexes",
        "merge_only",
        "extended",
        "prepared_generic",
        "prepared_custom",
        "cursor",
        "closed_early",
    )

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: tables with their indexes, then set operations over them."""
        tables = tuple(_Table(f"s{n}", between(rng, 1, scale.rows)) for n in range(1, _TABLES.pick(rng) + 1))
        scene = [step for table in tables for step in _steps_of(rng, table, scale)]
        scene += [Step(sql) for sql in _SETTINGS if chance(rng, 25)]
        begin(rng, Stream.ACTION)
        steps = [_query(rng, tables)]
        while another(rng, len(steps), scale.queries):
            steps.append(_query(rng, tables))
        return Case(self.name, tuple(scene), tuple(steps))


def _steps_of(rng: random.Random, table: _Table, scale: Scale) -> list[Step]:
    """Return the steps that create, fill, index and perhaps analyze a table."""
    rows, split = between(rng, 0, scale.rows), chance(rng, 25)
    columns = ", ".join(f"{name} {type_}" for name, (type_, _) in _COLUMNS.items())
    steps = [Step(f"CREATE TABLE {table.name} ({columns}){' PARTITION BY RANGE (i)' if split else ''}")]
    if split:
        edges = ("MINVALUE", str(between(rng, 1, table.repeat)), "MAXVALUE")
        bounds = (f"FOR VALUES FROM ({edges[n]}) TO ({edges[n + 1]})" for n in range(2))
        steps += [
            Step(f"CREATE TABLE {table.name}_{n} PARTITION OF {table.name} {bound}")
            for n, bound in enumerate((*bounds, "DEFAULT"), 1)
        ]
    values = ", ".join(_values(rng, made.format(repeat=table.repeat)) for _, made in _COLUMNS.values())
    steps.append(Step(f"INSERT INTO {table.name} SELECT {values} FROM generate_series(1, {rows}) AS g"))
    for _ in range(between(rng, 0, 3)):
        keys = ", ".join(f"{name}{SORT_DIRECTIONS.pick(rng)}" for name in some(rng, tuple(_COLUMNS), _WIDTH.pick(rng)))
        steps.append(Step(f"CREATE INDEX ON {table.name} ({keys})"))
    return [*steps, *([Step(f"ANALYZE {table.name}")] if chance(rng, 60) else ())]


def _values(rng: random.Random, made: str) -> str:
    """Return the expression for a column's values, some of which may be NULL."""
    return f"CASE WHEN g % {between(rng, 2, 9)} <> 0 THEN {made} END" if chance(rng, 40) else made


def _query(rng: random.Random, tables: Sequence[_Table]) -> Step:
    columns = some(rng, tuple(_COLUMNS), _WIDTH.pick(rng))
    if chance(rng, 6):
        return _recursive(rng, tables)
    sql, tags = _combined(rng, tables, columns)
    if chance(rng, 50):
        order = ", ".join(f"{n}{SORT_DIRECTIONS.pick(rng)}" for n in shuffled(rng, range(1, len(columns) + 1)))
        sql = f"{sql} ORDER BY {order} LIMIT {between(rng, 1, 30)}"
        sql += f" OFFSET {between(rng, 1, 30)}" if chance(rng, 20) else ""
        return Step(sql, Kind.QUERY, ordered=True, tags=(*tags, "ordered"))
    if chance(rng, 20):
        sql = f"SELECT {columns[0]}, count(*) FROM ({sql}) AS q GROUP BY 1 HAVING count(*) > {between(rng, 1, 5)}"
    return Step(digest(sql), Kind.QUERY, tags=tags)


def _combined(rng: random.Random, tables: Sequence[_Table], columns: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return a set operation of these columns over two to six branches, and its operators as tags."""
    sql, operators = _branch(rng, tables, columns), set()
    for _ in range(_BRANCHES.pick(rng) - 1):
        operator = _OPERATORS.pick(rng)
        operators.add(operator.lower().replace(" ", "_"))
        other = _branch(rng, tables, columns)
        sql = f"({sql}) {operator} ({other})" if chance(rng, 70) else f"({other}) {operator} ({sql})"
    return sql, tuple(sorted(operators))


def _branch(rng: random.Random, tables: Sequence[_Table], columns: Sequence[str]) -> str:
    table = pick(rng, tables)
    conditions = [_condition(rng, table) for _ in range(_CONDITIONS.pick(rng))]
    if chance(rng, 12):
        key, other = pick(rng, tuple(_COLUMNS)), pick(rng, tables)
        rows = f"SELECT {key} FROM {other.name} WHERE {key} IS NOT NULL"
        conditions.append(f"{key} {pick(rng, ('IN', 'NOT IN'))} ({rows})")
    head = "SELECT DISTINCT" if chance(rng, 10) else "SELECT"
    return f"{head} {', '.join(columns)} FROM {table.name}{where(conditions)}"


def _condition(rng: random.Random, table: _Table) -> str:
    name = pick(rng, tuple(_COLUMNS))
    if chance(rng, 15):
        return f"{name} IS {pick(rng, ('NOT NULL', 'NULL'))}"
    return f"{name} {_COMPARISONS.pick(rng)} {_LITERALS[name].format(rng.randrange(table.repeat + 1))}"


def _recursive(rng: random.Random, tables: Sequence[_Table]) -> Step:
    """Return a recursive UNION. It ends, because it has a finite number of different values."""
    first, second = pick(rng, tables), pick(rng, tables)
    start = f"SELECT i FROM {first.name} WHERE i < {between(rng, 1, 4)}"
    more = f"SELECT (r.i * {between(rng, 2, 5)} + 1) % {first.repeat} FROM r JOIN {second.name} USING (i)"
    return Step(f"WITH RECURSIVE r AS ({start} UNION {more}) {digest('TABLE r')}", Kind.QUERY, tags=("recursive",))
