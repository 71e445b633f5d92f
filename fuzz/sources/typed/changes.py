"""INSERT, UPDATE, DELETE and MERGE statements that find no row twice, and CREATE INDEX of all access methods."""

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

import psycopg

from fuzz.generators.choices import Weighted, between, chance, pick, some
from fuzz.generators.sql.scope import Column, Relation, RowSource, names
from fuzz.sources.determinism.analysis import is_quick
from fuzz.sources.typed.datatypes import DataType
from fuzz.sources.typed.expressions import as_exact, expression, is_comparable, some_type, sort_key, value
from fuzz.sources.typed.predicates import maybe_where, predicate
from fuzz.sources.typed.queries import derived, level
from fuzz.sources.typed.relations import ChangeableTable
from fuzz.sources.typed.scope import TypedScope

# Access methods by type: types of default operator classes, binary-coercible types, and polymorphic types by kind.
_CLASSES: Final = """
    SELECT DISTINCT t.typname::text, a.amname::text FROM pg_opclass AS c JOIN pg_am AS a ON a.oid = c.opcmethod
    JOIN pg_type AS t ON t.oid = c.opcintype OR EXISTS (
        SELECT FROM pg_cast
        WHERE castsource = t.oid AND casttarget = c.opcintype AND castmethod = 'b' AND castcontext = 'i')
    WHERE c.opcdefault
    ORDER BY 1, 2
"""
_POLYMORPHIC: Final = {"a": "anyarray", "e": "anyenum", "r": "anyrange", "m": "anymultirange", "c": "record"}


class Indexes:
    """The indexes that an arm can create."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        """Read operator classes. Raises psycopg.Error."""
        self._connection = connection
        self._methods: dict[str, list[str]] = {}
        for key, method in connection.execute(_CLASSES):
            self._methods.setdefault(key, []).append(method)

    def draw(self, rng: random.Random, scope: TypedScope, source: RowSource[DataType]) -> str | None:
        """Return a CREATE INDEX on the table, or None if the chosen column cannot be indexed.

        The size of a hash index depends on statistics, which a scene may falsify. So large estimates exclude hash
        indexes.
        """
        column = pick(rng, source.columns)
        type_ = scope.catalog.types[column.type.parts[0]] if column.type.kind == "d" else column.type
        methods = self._methods.get(type_.key, []) + self._methods.get(_POLYMORPHIC.get(type_.kind, ""), [])
        method = pick(rng, methods) if methods else ""
        if not method or (method == "hash" and not is_quick(self._connection, f"TABLE {source.name}")):
            return None
        over = scope.only(Relation(source.name, source.name, source.columns, source.rows))
        partial = f" WHERE {predicate(rng, over.without_sources())}" if chance(rng, 15) else ""
        return f"CREATE INDEX ON {source.name} USING {method} ({column.name}){partial}"


_VERSION_OF_MERGE: Final = 150000
_VERSION_OF_RETURNING: Final = 170000  # of RETURNING in MERGE, and of NOT MATCHED BY SOURCE


def change(rng: random.Random, scope: TypedScope, table: ChangeableTable) -> tuple[str, str]:
    """Return a change of the table, and its name."""
    maker = _CHANGES.pick(rng)
    if maker is _merge and scope.catalog.version < _VERSION_OF_MERGE:
        maker = _insert
    return maker(rng, scope, table), maker.__name__.strip("_").replace("_", " ")


def _insert(rng: random.Random, scope: TypedScope, table: ChangeableTable) -> str:
    """Return an INSERT of values or of a query, mostly with ON CONFLICT."""
    columns = (*table.key, *table.free)
    source = _values(rng, columns) if chance(rng, 40) else _rows(rng, scope, table)
    conflict = _on_conflict(rng, scope, table) if chance(rng, 85) else ""
    returning = _returning(rng, scope.only(table.source.relation("t")))
    return f"INSERT INTO {table.source.name} AS t ({names(columns)}) {source}{conflict}{returning}"


def _values(rng: random.Random, columns: Sequence[Column[DataType]]) -> str:
    """Return one row, so that no two inserted rows conflict."""
    return f"VALUES ({', '.join(_given(rng, column) for column in columns)})"


def _given(rng: random.Random, column: Column[DataType]) -> str:
    return value(rng, column.type) if column.nullable else pick(rng, column.type.values)


def _rows(rng: random.Random, scope: TypedScope, table: ChangeableTable) -> str:
    """Return a query for all columns of a table, without duplicate keys."""
    rest, over = level(rng, scope.inner())
    columns = (*table.key, *table.free)
    made = [_filled(rng, expression(rng, over, column.type, 2), column) for column in columns]
    keys = ", ".join(_key(sql, column) for sql, column in zip(made, table.key, strict=False))
    order = ", ".join(sort_key(sql, column.type) for sql, column in zip(made, columns, strict=True))
    return f"SELECT DISTINCT ON ({keys}) {', '.join(made)}{rest} ORDER BY {keys}, {order} LIMIT 40"


def _key(sql: str, column: Column[DataType]) -> str:
    """Return an expression that is equal if and only if the values of a key are equal."""
    return as_exact(sql, column.type) if is_comparable(column.type) else sort_key(sql, column.type)


def _filled(rng: random.Random, sql: str, column: Column[DataType]) -> str:
    return sql if column.nullable else f"coalesce({sql}, {pick(rng, column.type.values)})"


def _on_conflict(rng: random.Random, scope: TypedScope, table: ChangeableTable) -> str:
    keys = names(table.key)
    if not table.free or chance(rng, 30):
        return f" ON CONFLICT {pick(rng, ('', f'({keys}) '))}DO NOTHING"
    seen = scope.only(*(table.source.relation(alias) for alias in ("t", "excluded")))
    return f" ON CONFLICT ({keys}) DO UPDATE SET {_assigned(rng, seen, table)}{maybe_where(rng, seen, 40)}"


def _assigned(rng: random.Random, scope: TypedScope, table: ChangeableTable) -> str:
    """Return assignments to some of the columns outside the key."""
    made = []
    for column in some(rng, table.free, between(rng, 1, 2)):
        made.append(f"{column.name} = {_filled(rng, expression(rng, scope, column.type, 2), column)}")
    return ", ".join(made)


def _returning(rng: random.Random, scope: TypedScope, first: str = "") -> str:
    """Return a RETURNING clause over the scope, with `first` before its expressions, or ""."""
    if not chance(rng, 50):
        return ""
    made = [expression(rng, scope, some_type(rng, scope), 2) for _ in range(between(rng, 1, 3))]
    return f" RETURNING {first}{', '.join(made)}"


def _matching(rng: random.Random, scope: TypedScope, table: ChangeableTable) -> tuple[Relation[DataType], str]:
    """Return a FROM item, and a condition under which each target row matches at most one of its rows."""
    source = derived(_rows(rng, scope, table), "s", [column.type for column in (*table.key, *table.free)])
    pairs = zip(table.key, source.columns, strict=False)
    return source, " AND ".join(f"{_key(f't.{a.name}', a)} = {_key(b.sql, b)}" for a, b in pairs)


def _update(rng: random.Random, scope: TypedScope, table: ChangeableTable) -> str:
    made, seen = _updated(rng, scope, table)
    return made + _returning(rng, seen)


def _updated(rng: random.Random, scope: TypedScope, table: ChangeableTable) -> tuple[str, TypedScope]:
    """Return an UPDATE, and the scope of RETURNING."""
    own = table.source.relation("t")
    over = scope.over((own,), own.rows)
    start = f"UPDATE {table.source.name} AS t SET"
    if chance(rng, 50):
        return f"{start} {_assigned(rng, over, table)}{maybe_where(rng, over, 90)}", scope.only(own)
    source, equal = _matching(rng, scope, table)
    both = scope.over((own, source), own.rows)
    further = f" AND {predicate(rng, both)}" if chance(rng, 40) else ""
    return f"{start} {_assigned(rng, both, table)} FROM {source.sql} WHERE {equal}{further}", scope.only(own, source)


def _delete(rng: random.Random, scope: TypedScope, table: ChangeableTable) -> str:
    made, seen = _deleted(rng, scope, table)
    return made + _returning(rng, seen)


def _deleted(rng: random.Random, scope: TypedScope, table: ChangeableTable) -> tuple[str, TypedScope]:
    """Return a DELETE, and the scope of RETURNING."""
    own = table.source.relation("t")
    over = scope.over((own,), own.rows)
    start = f"DELETE FROM {table.source.name} AS t"
    if chance(rng, 60):
        return f"{start} WHERE {predicate(rng, over)} AND {predicate(rng, over)}", scope.only(own)
    source, equal = _matching(rng, scope, table)
    both = scope.over((own, source), own.rows)
    return f"{start} USING {source.sql} WHERE {equal} AND {predicate(rng, both)}", scope.only(own, source)


def _merge(rng: random.Random, scope: TypedScope, table: ChangeableTable) -> str:
    source, equal = _matching(rng, scope, table)
    own = table.source.relation("t")
    over, both = scope.over((own,), 1), scope.over((own, source), 1)
    actions = [
        f"WHEN MATCHED AND {predicate(rng, both)} THEN {pick(rng, ('DELETE', 'DO NOTHING'))}",
        f"WHEN MATCHED THEN UPDATE SET {_assigned(rng, both, table)}",
        f"WHEN NOT MATCHED AND {predicate(rng, scope.only(source))} THEN "
        f"INSERT ({names((*table.key, *table.free))}) VALUES ({', '.join(column.sql for column in source.columns)})",
    ]
    returning = ""
    if scope.catalog.version >= _VERSION_OF_RETURNING:
        actions.append(
            f"WHEN NOT MATCHED BY SOURCE AND {predicate(rng, over)} THEN UPDATE SET {_assigned(rng, over, table)}"
        )
        returning = _returning(rng, scope.only(own), "merge_action(), ")
    chosen = " ".join(action for action in actions if chance(rng, 75)) or actions[1]
    return f"MERGE INTO {table.source.name} AS t USING {source.sql} ON {equal} {chosen}{returning}"


def _change_in_with(rng: random.Random, scope: TypedScope, table: ChangeableTable) -> str:
    """Return a query over a WITH clause that has an UPDATE or DELETE with RETURNING."""
    made, _ = pick(rng, (_updated, _deleted))(rng, scope, table)
    key = table.key[0]
    shown = f"({_key(f'w.{key.name}', key)})::text"
    return f"WITH w AS ({made} RETURNING t.*) SELECT count(*), min({shown}), max({shown}) FROM w"


_CHANGES: Final[Weighted[Callable[[random.Random, TypedScope, ChangeableTable], str]]] = Weighted(
    (35, _insert), (25, _update), (10, _delete), (20, _merge), (10, _change_in_with)
)
