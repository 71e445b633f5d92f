"""The tables of a scene, FROM items other than subqueries, and joins."""

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from fuzz.generators.choices import Weighted, between, chance, first_made, pick
from fuzz.generators.sql.scope import MANY, Column, Relation, RowSource, names, under
from fuzz.sources.typed.datatypes import DataType
from fuzz.sources.typed.expressions import argument, expression, some_type, value
from fuzz.sources.typed.predicates import predicate
from fuzz.sources.typed.scope import TypedScope, numbered

# Tables with triggers or rules may be read only: a trigger or rule sees rows one after another, so their order matters.
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
_WIDEST: Final = 500  # upper bound of a column's width in bytes; longer text takes seconds, for example as a pattern
_KEYS: Final = """
    SELECT indrelid::int, indkey::int[], indpred IS NULL AND indexprs IS NULL AND indimmediate AND NOT indisexclusion
    FROM pg_index WHERE indisunique OR indisexclusion
    ORDER BY indrelid::regclass::text COLLATE "C", indkey::text
"""


@dataclass(frozen=True, slots=True)
class ChangeableTable:
    """A table that may be changed: its columns outside unique indexes, and its only key."""

    source: RowSource[DataType]
    free: tuple[Column[DataType], ...]
    key: tuple[Column[DataType], ...]


def read_tables(
    connection: psycopg.Connection[Any], types: Mapping[str, DataType]
) -> tuple[tuple[RowSource[DataType], ...], tuple[ChangeableTable, ...]]:
    """Return the tables of a scene with columns of known types, and those that may be changed.

    Columns of long text are left out. Raises psycopg.Error.
    """
    keys: dict[int, list[tuple[list[int], bool]]] = {}
    for oid, numbers, plain in connection.execute(_KEYS):
        keys.setdefault(oid, []).append((numbers, plain))
    sources: list[RowSource[DataType]] = []
    tables: list[ChangeableTable] = []
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
        source = RowSource(name, tuple(columns.values()), rows)
        sources.append(source)
        complete = len(columns) == len(listed) and all(each["given"] for each in listed)
        if complete and not watched:
            tables += _changeable(source, columns, keys.get(oid, []))
    return tuple(sources), tuple(tables)


def _measured(connection: psycopg.Connection[Any], table: str, columns: Sequence[str]) -> list[int]:
    """Return the number of rows of a table, and the maximum length of each column's values as text."""
    widths = (f"coalesce(max(octet_length({column}::text)), 0)" for column in columns)
    row = connection.execute(f"SELECT {', '.join(('count(*)::int', *widths))} FROM {table}".encode()).fetchone()
    assert row is not None
    return list(row)


def _column(row: Mapping[str, Any], types: Mapping[str, DataType], unique: Collection[int]) -> Column[DataType]:
    name, fan = row["name"], 1 if row["number"] in unique else MANY
    collation = row["collation"] or ""
    return Column(name, name, types[row["type"]], fan, nullable=row["nullable"], collation=collation)


def _changeable(
    source: RowSource[DataType], columns: Mapping[int, Column[DataType]], keys: list[tuple[list[int], bool]]
) -> Iterator[ChangeableTable]:
    """Yield the table if it has exactly one key, without nullable columns."""
    if len(keys) == 1 and keys[0][1]:
        key = tuple(columns[number] for number in keys[0][0])
        if not any(column.nullable for column in key):
            yield ChangeableTable(source, tuple(column for column in source.columns if column not in key), key)


_SET_ROWS: Final = 5  # estimated rows of a set-returning function
_MOST_ROWS: Final = 4_000  # upper bound of the estimated rows of a join
_DISTINCT: Final = 4  # estimated distinct values of a column
_KINDS: Final = ("JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN")
_JSON_COLUMNS: Final = (
    ("n", "int8", "n FOR ORDINALITY"),
    ("a", "int4", "a int4 PATH '$.a' DEFAULT -1 ON ERROR"),
    ("c", "text", "c text PATH '$.c'"),
    ("j", "jsonb", "j jsonb PATH '$'"),
    ("b", "bool", "b bool EXISTS PATH '$.a.b'"),
)


def table(rng: random.Random, scope: TypedScope, alias: str) -> Relation[DataType]:
    """Return a table or common table expression."""
    return pick(rng, scope.sources).relation(alias)


def function(rng: random.Random, scope: TypedScope, alias: str) -> Relation[DataType] | None:
    """Return a set-returning function whose arguments may use columns of the scope, or None."""
    form = pick(rng, scope.catalog.sets)
    some = some_type(rng, scope)
    wanted = scope.catalog.types.get(form.result) or scope.catalog.polymorphism.element(some)
    found = scope.catalog.polymorphism.resolved(form, wanted, some)
    if found is None:
        return None
    types = [scope.catalog.types[key] for key in found.arguments]
    if any(type_.category in "DT" for type_ in types):  # such a series may have any number of rows
        return None
    sql = found.sql([argument(rng, scope, type_, 1, small=True) for type_ in types])
    columns = (Column(f"{alias}.v", "v", wanted, nullable=True),)
    if chance(rng, 40):
        ordinal = Column(f"{alias}.o", "o", scope.catalog.types["int8"], nullable=True)
        return Relation(f"{sql} WITH ORDINALITY AS {alias} (v, o)", alias, (*columns, ordinal), _SET_ROWS)
    return Relation(f"{sql} AS {alias} (v)", alias, columns, _SET_ROWS)


def values(rng: random.Random, scope: TypedScope, alias: str) -> Relation[DataType]:
    """Return a VALUES list."""
    types = [some_type(rng, scope) for _ in range(between(rng, 1, 3))]
    count = between(rng, 1, 5)
    rows = ", ".join(f"({', '.join(value(rng, type_) for type_ in types)})" for _ in range(count))
    columns = numbered(types, "v")
    return Relation(f"(VALUES {rows}) AS {alias} ({names(columns)})", alias, under(alias, columns), count)


def json_table(rng: random.Random, scope: TypedScope, alias: str) -> Relation[DataType] | None:
    """Return a JSON_TABLE, or None before PostgreSQL 17."""
    if scope.catalog.version < 170000:
        return None
    types, document = scope.catalog.types, expression(rng, scope, scope.catalog.types["jsonb"], 1)
    columns = tuple(Column(f"{alias}.{name}", name, types[key], nullable=True) for name, key, _ in _JSON_COLUMNS)
    declared = ", ".join(declaration for _, _, declaration in _JSON_COLUMNS)
    path = pick(rng, ("$", "$[*]", "$.a.b[*]"))
    return Relation(f"JSON_TABLE({document}, '{path}' COLUMNS ({declared})) AS {alias}", alias, columns, _SET_ROWS)


ITEMS: Final[Weighted[Callable[[random.Random, TypedScope, str], Relation[DataType] | None]]] = Weighted(
    (70, table), (8, function), (5, values), (4, json_table)
)


def plain_item(rng: random.Random, scope: TypedScope, alias: str) -> Relation[DataType]:
    """Return an item other than a subquery."""
    return first_made(rng, ITEMS, rng, scope, alias) or table(rng, scope, alias)


def joined(rng: random.Random, scope: TypedScope, items: Sequence[Relation[DataType]]) -> tuple[str, TypedScope]:
    """Return a FROM list of the items, each of which may refer to earlier ones, and the scope over them.

    Items that would yield too many rows are left out.
    """
    sql, relations, rows = items[0].sql, tuple(items[:1]), items[0].rows
    for item in items[1:]:
        pair = _equal(rng, [column for relation in relations for column in relation.columns], item.columns)
        grown = _grown(rows, item.rows, pair)
        if grown > _MOST_ROWS:
            break
        seen = scope.over((*relations, item), grown)
        if not pair and chance(rng, 30):
            sql += f" CROSS JOIN {item.sql}"
        elif pair and chance(rng, 85):
            kind = pick(rng, _KINDS[:2] if _is_lateral(item) else _KINDS)  # the grammar forbids other kinds
            further = f" AND {predicate(rng, seen)}" if chance(rng, 30) and "FULL" not in kind else ""
            sql += f" {kind} {item.sql} ON {pair[0].sql} = {pair[1].sql}{further}"
        else:
            grown = rows * item.rows
            if grown > _MOST_ROWS:
                break
            sql += f" {pick(rng, _KINDS[:2])} {item.sql} ON {predicate(rng, seen)}"
        relations, rows = (*relations, item), grown
    return sql, scope.over(relations, rows)


def _grown(left: int, right: int, pair: tuple[Column[DataType], Column[DataType]] | None) -> int:
    """Return the estimated rows of a join. Values outside of keys are assumed to be frequent."""
    if pair and (pair[0].fan == 1 or pair[1].fan == 1):
        return max(left, right)
    return left * right // (_DISTINCT if pair else 1)


def _is_lateral(item: Relation[DataType]) -> bool:
    return "(" in item.sql.split(" AS ", 1)[0]


def _equal(
    rng: random.Random, left: Sequence[Column[DataType]], right: Sequence[Column[DataType]]
) -> tuple[Column[DataType], Column[DataType]] | None:
    """Return two columns of equal type and collation, preferably a key, or None."""
    pairs = [(a, b) for a in left for b in right if a.type is b.type and a.type.ordered and a.collation == b.collation]
    keys = [pair for pair in pairs if pair[0].fan == 1 or pair[1].fan == 1]
    return pick(rng, keys if keys and chance(rng, 50) else pairs) if pairs else None
