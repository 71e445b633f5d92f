"""Source `typed`: statements composed by type from the functions, operators, casts and aggregates of the arm.

Scenes are those of generators, or one of its own with columns of all families of types and user-defined types.
Statements are deterministic by construction. The reference executes them in sequence; most of those that it refuses or
executes slowly are dropped.
"""

import random
from collections.abc import Iterator
from typing import Any, ClassVar, Final

import psycopg

from fuzz.errors import CaseError
from fuzz.generators.choices import Weighted, between, chance, pick, some
from fuzz.generators.generator import Scale, small_scene
from fuzz.sources.determinism.analysis import is_quick
from fuzz.sources.source import Source, UserInput
from fuzz.sources.typed.catalog import ServerCatalog, catalog_of
from fuzz.sources.typed.changes import Indexes, change
from fuzz.sources.typed.datatypes import DataType
from fuzz.sources.typed.queries import query
from fuzz.sources.typed.relations import ChangeableTable, read_tables
from fuzz.sources.typed.scope import TypedScope
from oracles.model.case import Case, Kind, Step

_TYPES: Final = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'elated')",
    "CREATE DOMAIN natural_number AS int4 CHECK (VALUE >= 0)",
    "CREATE DOMAIN word AS text CHECK (length(VALUE) < 4000)",
    "CREATE TYPE pair AS (n int4, t text)",
    "CREATE TYPE nested AS (p pair, d date, m mood)",
    "CREATE TYPE span AS RANGE (subtype = float8, subtype_diff = float8mi)",
)
# SQL of a column's value in row {}, for user-defined types.
_OWN: Final[tuple[tuple[str, str], ...]] = (
    ("mood", "(enum_range(NULL::mood))[1 + {} % 4]"),
    ("natural_number", "({} % 9)"),
    ("word", "chr(97 + {} % 6)"),
    ("pair", "ROW({0} % 5, chr(97 + {0} % 3))::pair"),
    ("nested", "ROW(ROW({0} % 5, 'x'), date '2024-01-01' + {0} % 20, 'ok')::nested"),
    ("span", "span({0} % 7, {0} % 7 + 1.5)"),
    ("mood[]", "enum_range('sad'::mood, (enum_range(NULL::mood))[1 + {} % 4])"),
    ("pair[]", "ARRAY[ROW({0} % 3, 'y')::pair, NULL]"),
)
_FAMILIES: Final = (
    *("bool", "int2", "int4", "int8", "numeric", "float4", "float8", "text", "varchar", "bytea", "date"),
    *("time", "timetz", "timestamp", "timestamptz", "interval", "uuid", "inet", "cidr", "macaddr", "varbit", "json"),
    *("jsonb", "tsvector", "point", "box", "_int4", "_text", "_numeric", "_date", "int4range", "numrange", "daterange"),
    *("tsrange", "int4multirange", "datemultirange", "int4", "text", "jsonb", "numeric", "timestamp", "name", "money"),
)
_TABLES: Final = 3
_COLUMNS: Final = 10


def scene(rng: random.Random, catalog: ServerCatalog, rows: int) -> tuple[Step, ...]:
    """Return the steps that create and fill some tables of at most `rows` rows."""
    steps = [Step(sql) for sql in _TYPES]
    keys = [key for key in _FAMILIES if key in catalog.types]
    common = some(rng, keys, _COLUMNS // 2)  # each table has some of these types, so that tables can be joined
    for n in range(between(rng, 2, _TABLES)):
        chosen = (*some(rng, common, 3), *some(rng, keys, _COLUMNS - 3))
        steps += _table(
            rng, catalog, f"t{n + 1}", [catalog.types[key] for key in chosen], between(rng, rows // 4, rows)
        )
    return tuple(steps)


def _table(rng: random.Random, catalog: ServerCatalog, name: str, types: list[DataType], rows: int) -> Iterator[Step]:
    declared, filled = ["id int4 PRIMARY KEY"], ["g"]
    for n, type_ in enumerate(types):
        collation = f" COLLATE {pick(rng, catalog.collations)}" if type_.collated and chance(rng, 50) else ""
        declared.append(f"c{n + 1} {type_.name}{collation}")
        filled.append(_cycle(rng, type_))
    for n, (type_name, sql) in enumerate(some(rng, _OWN, between(rng, 1, 4))):
        declared.append(f"o{n + 1} {type_name}")
        filled.append(f"CASE WHEN g % {pick(rng, (5, 11))} > 0 THEN {sql.format('g')} END")
    partitioned = chance(rng, 20)
    yield Step(f"CREATE TABLE {name} ({', '.join(declared)}){' PARTITION BY HASH (id)' if partitioned else ''}")
    for part in range(3) if partitioned else ():
        yield Step(f"CREATE TABLE {name}_{part} PARTITION OF {name} FOR VALUES WITH (MODULUS 3, REMAINDER {part})")
    yield Step(f"INSERT INTO {name} SELECT {', '.join(filled)} FROM generate_series(1, {rows}) AS g")
    if chance(rng, 70):
        yield Step(f"ANALYZE {name}")


def _cycle(rng: random.Random, type_: DataType) -> str:
    """Return SQL that cycles through the values of a type, and NULL, as g increases."""
    values = type_.values + (some(rng, type_.edges, 2) if chance(rng, 25) else ())
    cases = " ".join(f"WHEN {n} THEN {value}" for n, value in enumerate(values))
    return f"CASE g * {pick(rng, (1, 3, 7))} % {len(values) + 1} {cases} END"


_TRIES: Final = 5  # scenes to try until one has tables
_DRAWN: Final = 4  # statements generated per statement of a case
_LARGEST: Final = 12_000  # upper bound of a statement's length, in characters
_MOST_ROWS: Final = 2_000
# The planner's estimate of a query that takes minutes may be low. Oracles execute a query of a case about a hundred
# times, so one of some seconds would take minutes, too. A useful one takes milliseconds, also on a slow machine.
_TIMEOUT: Final = "2s"
_REFUSED: Final = 3  # percentage of failing statements that are kept
_STEPS: Final = Weighted((80, "query"), (15, "change"), (5, "index"))


class Typed(Source):
    """Statements composed from the arm's own catalogs."""

    name: ClassVar[str] = "typed"
    cpu_seconds: ClassVar[float] = 1.7

    @classmethod
    def lacks(cls, given: UserInput) -> str:
        """Return "", because every arm has catalogs."""
        return ""

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case. Raises CaseError, ServerError."""
        for _ in range(_TRIES):
            steps = self._scene(rng, scale)
            with self.target.session(steps) as connection:
                made = self._steps(rng, connection, scale.queries)
            if made:
                return Case(self.name, steps, made)
        raise CaseError(f"nothing could be composed, on {_TRIES} scenes")

    def _scene(self, rng: random.Random, scale: Scale) -> tuple[Step, ...]:
        catalog = catalog_of(self.target)
        if chance(rng, 60):
            return scene(rng, catalog, max(8, scale.rows // 5))
        return small_scene(rng, scale)

    def _steps(self, rng: random.Random, connection: psycopg.Connection[Any], count: int) -> tuple[Step, ...]:
        catalog = catalog_of(self.target).in_scene(connection)
        connection.execute(f"SET statement_timeout = '{_TIMEOUT}'")
        sources, tables = read_tables(connection, catalog.types)
        if not sources:
            return ()
        indexes = Indexes(connection)
        steps: list[Step] = []
        for _ in range(count * _DRAWN):
            scope = TypedScope(sources, catalog=catalog, collation=pick(rng, ('"default"', *catalog.collations)))
            step = _random_step(rng, scope, tables, indexes)
            if (done := _executed(connection, step)) or (done is False and chance(rng, _REFUSED)):
                steps.append(step)
            if len(steps) == count:
                break
        return tuple(steps)


def _random_step(rng: random.Random, scope: TypedScope, tables: tuple[ChangeableTable, ...], indexes: Indexes) -> Step:
    kind = _STEPS.pick(rng)
    if kind == "change" and tables:
        sql, tag = change(rng, scope, pick(rng, tables))
        return Step(sql, may_fail=True, tags=(tag,))
    if kind == "index" and (made := indexes.draw(rng, scope, pick(rng, scope.sources))):
        return Step(made, may_fail=True, tags=("index",))
    sql, ordered, tags = query(rng, scope)
    return Step(sql, Kind.QUERY, ordered=ordered, may_fail=True, tags=tags)


def _executed(connection: psycopg.Connection[Any], step: Step) -> bool | None:
    """Execute a step, and return whether it succeeds; None if it is too large or slow. Raises psycopg.Error."""
    if len(step.sql) > _LARGEST or not is_quick(connection, step.sql):
        return None
    try:
        done = connection.execute(step.sql.encode())
    except psycopg.errors.QueryCanceled:
        return None
    except psycopg.Error:
        if connection.broken:
            raise
        return False
    return True if done.rowcount <= _MOST_ROWS or step.kind is not Kind.QUERY else None
