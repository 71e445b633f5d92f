"""Types of an arm, including those of a scene, each with values as SQL.

`attempted` executes many independent statements and returns their SQLSTATEs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import psycopg

from fuzz.sources.typed.values import EDGES, VALUES

UNDERSTOOD: Final = frozenset({"", "22"})  # classes of SQLSTATE: success, and data exceptions
_ATTEMPTED: Final = """
    CREATE OR REPLACE FUNCTION pg_temp.pgduel_attempted(sql text) RETURNS text LANGUAGE plpgsql AS $$
    BEGIN EXECUTE sql; RETURN ''; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $$
"""
_STATES: Final = "SELECT pg_temp.pgduel_attempted(s) FROM unnest(%s::text[]) WITH ORDINALITY AS t(s, n) ORDER BY n"


def attempted(connection: psycopg.Connection[Any], statements: Sequence[str]) -> list[str]:
    """Execute and roll back each statement; return the SQLSTATEs, "" for success. Raises psycopg.Error."""
    with connection.transaction(force_rollback=True):
        connection.execute(_ATTEMPTED)
        return [state for (state,) in connection.execute(_STATES, [list(statements)])]


_TYPES: Final = Path(__file__).with_name("types.sql").read_text()


@dataclass(frozen=True, slots=True)
class DataType:
    """A type; see types.sql. `values` are SQL, ascending if the type has an order; `edges` are extreme values."""

    key: str  # name in pg_type
    name: str  # as in a cast
    kind: str  # b: base, e: enum, d: domain, a: array, r: range, m: multirange, c: composite
    category: str  # pg_type.typcategory
    parts: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    exact: bool = False
    ordered: bool = False
    long: bool = False
    collated: bool = False
    sources: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    edges: tuple[str, ...] = ()


def read_types(connection: psycopg.Connection[Any], known: Mapping[str, DataType]) -> dict[str, DataType]:
    """Return the types of the server by key: the known ones, and new ones for which there are values."""
    rows = [DataType(*map(_frozen, row)) for row in connection.execute(_TYPES)]
    found = {row.key: known[row.key] for row in rows if row.key in known}
    waiting = [row for row in rows if row.key not in found and (row.parts or row.key in VALUES or row.labels)]
    while ready := [row for row in waiting if found.keys() >= set(row.parts)]:
        found |= {made.key: made for made in _accepted(connection, [_made(row, found) for row in ready])}
        waiting = [row for row in waiting if row not in ready]
    return {row.key: found[row.key] for row in rows if row.key in found}


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _made(row: DataType, types: Mapping[str, DataType]) -> DataType:
    parts = [types[part] for part in row.parts]
    return replace(
        row,
        exact=all(part.exact for part in parts) if parts else row.exact,
        ordered=all(part.ordered for part in parts) if parts else row.ordered,
        values=tuple(_values(row, parts)),
        edges=tuple(_literal(row, text) for text in EDGES.get(row.key, ())) if row.kind == "b" else (),
    )


def _accepted(connection: psycopg.Connection[Any], made: Sequence[DataType]) -> Iterator[DataType]:
    """Yield the types with the values that the arm accepts. It may be older than a value, or have a check."""
    drawn = [(each.key, value) for each in made for value in each.values + each.edges]
    states = attempted(connection, [f"SELECT {value}" for _, value in drawn])
    refused = {pair for pair, state in zip(drawn, states, strict=True) if state}
    for each in made:
        values, edges = (
            tuple(value for value in some if (each.key, value) not in refused) for some in (each.values, each.edges)
        )
        if values:
            yield replace(each, values=values, edges=edges)


def _literal(type_: DataType, text: str) -> str:
    quoted = text.replace("'", "''")
    return f"'{quoted}'::{type_.name}"


def _values(row: DataType, parts: Sequence[DataType]) -> Iterator[str]:
    if not parts:
        yield from (_literal(row, text) for text in row.labels or VALUES[row.key])
    elif row.kind == "c":
        for n in range(4):
            yield f"ROW({', '.join(part.values[n % len(part.values)] for part in parts)})::{row.name}"
        yield f"ROW({', '.join('NULL' for _ in parts)})::{row.name}"
    elif row.kind == "d":
        yield from (f"({value})::{row.name}" for value in parts[0].values)
    else:
        yield from _collections(row, parts[0].values)


def _collections(row: DataType, values: tuple[str, ...]) -> Iterator[str]:
    """Yield arrays, ranges or multiranges of these values."""
    low, middle, high = values[0], values[len(values) // 2], values[-1]
    if row.kind == "a":
        yield f"'{{}}'::{row.name}"
        for listed in (low, f"{middle}, {low}", f"{low}, NULL, {high}, {low}", high):
            yield f"ARRAY[{listed}]::{row.name}"
    elif row.kind == "r":
        yield f"'empty'::{row.name}"
        for bounds in (f"NULL, {middle}", f"{low}, {middle}", f"{low}, {high}", f"{middle}, {high}, '[]'"):
            yield f"{row.name}({bounds})"
    else:
        yield f"'{{}}'::{row.name}"
        for listed in (values[1], values[2], f"{values[2]}, {values[-1]}"):
            yield f"{row.name}({listed})"
