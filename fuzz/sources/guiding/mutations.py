"""Mutations of a scene: what may have the planner choose another plan for the same query.

What they do to rows depends on the rows alone, so that all arms end up with the same ones.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from fuzz.generators.choices import between, chance, pick, some

_COLUMNS: Final = """
    SELECT quote_ident(c.relname), array_agg(quote_ident(a.attname) ORDER BY a.attnum)
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'duel'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
      AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    GROUP BY c.relname ORDER BY c.relname COLLATE "C"
"""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the scene, names quoted where that is needed."""

    name: str
    columns: tuple[str, ...]


def tables_of(connection: psycopg.Connection[Any]) -> tuple[Table, ...]:
    """Return the tables in a case's schema. Raises psycopg.Error."""
    return tuple(Table(name, tuple(columns)) for name, columns in connection.execute(_COLUMNS).fetchall())


def _index(rng: random.Random, table: Table) -> str:
    columns = ", ".join(some(rng, table.columns, between(rng, 1, 2)))
    return f"CREATE INDEX ON {table.name} ({columns})"


def _partial_index(rng: random.Random, table: Table) -> str:
    column, other = pick(rng, table.columns), pick(rng, table.columns)
    return f"CREATE INDEX ON {table.name} ({column}) WHERE {other} IS NOT NULL"


def _statistics(rng: random.Random, table: Table) -> str:
    columns = some(rng, table.columns, between(rng, 2, 3))
    return f"CREATE STATISTICS ON {', '.join(columns)} FROM {table.name}" if len(columns) > 1 else _analyze(rng, table)


def _analyze(_rng: random.Random, table: Table) -> str:
    return f"ANALYZE {table.name}"


def _vacuum(_rng: random.Random, table: Table) -> str:
    return f"VACUUM (ANALYZE) {table.name}"


def _fewer(rng: random.Random, table: Table) -> str:
    kept = pick(rng, (2, 5, 50))
    return f"DELETE FROM {table.name} AS t WHERE hashtextextended(t::text, 0) % {kept} <> 0"


def _more(_rng: random.Random, table: Table) -> str:
    columns = ", ".join(table.columns)
    return f"INSERT INTO {table.name} ({columns}) SELECT {columns} FROM {table.name}"


def _alike(rng: random.Random, table: Table) -> str:
    """Give most rows the same value, which is then known as common, or NULL."""
    column = pick(rng, table.columns)
    value = "NULL" if chance(rng, 30) else f"(SELECT max({column}) FROM {table.name})"
    return f"UPDATE {table.name} AS t SET {column} = {value} WHERE hashtextextended(t::text, 1) % 4 <> 0"


def _filled(rng: random.Random, table: Table) -> str:
    return f"ALTER TABLE {table.name} ALTER {pick(rng, table.columns)} SET NOT NULL"


MUTATIONS: Final[Mapping[str, Callable[[random.Random, Table], str]]] = {
    "index": _index,
    "partial index": _partial_index,
    "analyze": _analyze,
    "vacuum": _vacuum,
    "fewer rows": _fewer,
    "more rows": _more,
    "equal values": _alike,
    "statistics": _statistics,
    "not null": _filled,
}
