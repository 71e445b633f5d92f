"""The tables of a scene as expressions see them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from fuzz.sources.composing.datatypes import DataType
from fuzz.sources.composing.scope import Column, Relation

# A change of rows that a trigger or a rule sees, one after another, may depend on their order.
_TABLES: Final = """
    SELECT c.oid::int, quote_ident(c.relname), c.relhastriggers OR c.relhasrules,
           json_agg(json_build_object(
               'name', quote_ident(a.attname), 'type', t.typname, 'collation', quote_ident(l.collname),
               'number', a.attnum, 'nullable', NOT a.attnotnull, 'given', a.attgenerated = '' AND a.attidentity = '')
               ORDER BY a.attnum)
    FROM pg_class AS c
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    JOIN pg_type AS t ON t.oid = a.atttypid
    LEFT JOIN pg_collation AS l ON l.oid = a.attcollation AND l.collname <> 'default'
    WHERE c.relnamespace = 'duel'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    GROUP BY c.oid ORDER BY c.relname COLLATE "C"
"""
_WIDEST: Final = 500  # bytes; as a pattern, for one, longer text takes seconds
_KEYS: Final = """
    SELECT indrelid::int, indkey::int[], indpred IS NULL AND indexprs IS NULL AND indimmediate AND NOT indisexclusion
    FROM pg_index WHERE indisunique OR indisexclusion
    ORDER BY indrelid::regclass::text COLLATE "C", indkey::text
"""


@dataclass(frozen=True, slots=True)
class Table:
    """A table that may be changed: of its columns, those that no unique index knows, and its one key."""

    relation: Relation
    free: tuple[Column, ...]
    key: tuple[Column, ...]


def read_tables(
    connection: psycopg.Connection[Any], types: Mapping[str, DataType]
) -> tuple[tuple[Relation, ...], tuple[Table, ...]]:
    """Return the tables of a scene that have columns of known types, and which of them may be changed.

    Columns of long text are not taken. Raises psycopg.Error.
    """
    keys: dict[int, list[tuple[list[int], bool]]] = {}
    for oid, numbers, plain in connection.execute(_KEYS):
        keys.setdefault(oid, []).append((numbers, plain))
    relations: list[Relation] = []
    tables: list[Table] = []
    for oid, name, watched, listed in connection.execute(_TABLES).fetchall():
        unique = {numbers[0] for numbers, plain in keys.get(oid, []) if plain and len(numbers) == 1}
        known = [each for each in listed if each["type"] in types]
        rows, *widths = _measured(connection, name, [each["name"] for each in known])
        columns = {
            each["number"]: _column(each, types, unique)
            for each, width in zip(known, widths, strict=True)
            if width <= _WIDEST
        }
        if not columns:
            continue
        relation = Relation(name, tuple(columns.values()), rows)
        relations.append(relation)
        complete = len(columns) == len(listed) and all(each["given"] for each in listed)
        if complete and not watched:
            tables += _changeable(relation, columns, keys.get(oid, []))
    return tuple(relations), tuple(tables)


def _measured(connection: psycopg.Connection[Any], table: str, columns: Sequence[str]) -> list[int]:
    """Return the number of rows of a table, and the length of the longest value, as text, of each column."""
    widths = (f"coalesce(max(octet_length({column}::text)), 0)" for column in columns)
    row = connection.execute(f"SELECT {', '.join(('count(*)::int', *widths))} FROM {table}".encode()).fetchone()
    assert row is not None
    return list(row)


def _column(row: Mapping[str, Any], types: Mapping[str, DataType], unique: Collection[int]) -> Column:
    return Column(row["name"], types[row["type"]], row["collation"] or "", row["nullable"], row["number"] in unique)


def _changeable(
    relation: Relation, columns: Mapping[int, Column], keys: list[tuple[list[int], bool]]
) -> Iterator[Table]:
    """Yield the table, if it has one key, of columns that are never null."""
    if len(keys) == 1 and keys[0][1]:
        key = tuple(columns[number] for number in keys[0][0])
        if not any(column.nullable for column in key):
            yield Table(relation, tuple(column for column in relation.columns if column not in key), key)
