"""Types of an arm, including those of a scene, each with values as SQL.

Built-in types have common values, ascending if the type has an order, and extreme ones, which may fail. Common values
are small, so that sums stay in range and texts short. None depends on the session or the clock. bpchar has no values:
as text, they would lose trailing blanks.

`attempted` executes many independent statements and returns their SQLSTATEs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import psycopg

_JSON: Final = ("null", "1", '"a"', "[]", "[1, null, 2]", '{"a": 1}', '{"a": {"b": [1, "x"]}, "c": "d"}')
_REALS: Final = ("-1.5", "0", "0.25", "1", "2", "10")
_DAYS: Final = ("1999-12-31", "2000-01-01", "2024-02-29", "2024-03-01", "2031-07-15")
_TIMES: Final = ("00:00:00", "01:02:03", "12:00:00.5", "23:59:59")
_MOMENTS: Final = tuple(f"{day} {time}" for day, time in zip(_DAYS, (*_TIMES, "06:00"), strict=True))

# By name in pg_type. Other types are used only if a scene has values of them.
VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "bool": ("false", "true"),
    "int2": ("-3", "0", "1", "2", "5", "12"),
    "int4": ("-7", "0", "1", "2", "3", "10", "42"),
    "int8": ("-100", "0", "1", "2", "7", "1000"),
    "numeric": ("-1.5", "0", "1", "1.00", "2.50", "10", "123.456"),
    "float4": _REALS,
    "float8": _REALS,
    "money": ("-2.50", "0", "1", "99.99"),
    "text": ("", " ", "0", "12", "A", "Foo", "a", "ab", "abc", "b", "foo bar", "é"),
    "varchar": ("", "A", "a", "ab", "b c", "é"),
    "name": ("a", "b", "some_name"),
    "char": ("A", "a", "b"),
    "bytea": (r"\x", r"\x00", r"\x6162", r"\xff"),
    "date": _DAYS,
    "time": _TIMES,
    "timetz": tuple(f"{time}+00" for time in _TIMES),
    "timestamp": _MOMENTS,
    "timestamptz": tuple(f"{moment}+00" for moment in _MOMENTS),
    "interval": ("-1 day", "0", "01:30:00", "1 day", "1 mon", "1 year 2 mons -3 days"),
    "uuid": tuple(f"00000000-0000-4000-8000-{number:012d}" for number in (0, 1, 2, 77)),
    "inet": ("10.0.0.1", "10.0.0.1/24", "192.168.1.5", "::1"),
    "cidr": ("10.0.0.0/8", "192.168.1.0/24", "::/0"),
    "macaddr": ("08:00:2b:01:02:03", "08:00:2b:01:02:04"),
    "macaddr8": ("08:00:2b:01:02:03:04:05", "08:00:2b:01:02:03:04:06"),
    "bit": ("0",),
    "varbit": ("", "0", "0110", "1", "101"),
    "json": _JSON,
    "jsonb": _JSON,
    "jsonpath": ("$", "$.a", "$.*", "$[*]", "$.a.b[*]", "$[*] ? (@ > 1)"),
    "tsvector": ("", "a b", "'foo':1A,3 'bar':2"),
    "tsquery": ("a", "a & b", "foo <-> bar", "!a | b"),
    "point": ("(0,0)", "(1,2)", "(-1,0.5)"),
    "lseg": ("[(0,0),(1,1)]", "[(0,1),(2,0)]"),
    "line": ("{1,-1,0}", "{0,1,2}"),
    "box": ("(1,1),(0,0)", "(3,2),(1,0)"),
    "path": ("[(0,0),(1,1),(2,0)]", "((0,0),(1,0),(0,1))"),
    "polygon": ("((0,0),(1,0),(0,1))", "((0,0),(2,0),(2,2),(0,2))"),
    "circle": ("<(0,0),1>", "<(1,1),2>"),
}
EDGES: Final[Mapping[str, tuple[str, ...]]] = {
    "int2": ("-32768", "32767"),
    "int4": ("-2147483648", "2147483647"),
    "int8": ("-9223372036854775808", "9223372036854775807"),
    "numeric": ("NaN", "Infinity", "-Infinity", "0.000", "99999999999999999999.5"),
    "float4": ("NaN", "Infinity", "-Infinity", "-0", "3e38"),
    "float8": ("NaN", "Infinity", "-Infinity", "-0", "1e300", "1e-300"),
    "text": ("%", "_", "(", "a\\b", "foo'bar", "long " * 30),
    "date": ("-infinity", "infinity", "0044-03-15 BC"),
    "timestamp": ("-infinity", "infinity"),
    "timestamptz": ("-infinity", "infinity"),
    "interval": ("100 years", "-1000 days 25:00"),
    "time": ("24:00:00",),
}
BOUNDED: Final = ("0", "1", "2", "3")  # integers for arguments that determine the size of a result


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
