"""Functions, operators, casts and aggregates of an arm that are deterministic and work.

`SYNTAX` has the expressions of the grammar that the catalogs do not list. `Polymorphism` resolves the polymorphic types
of a signature.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

import psycopg

from fuzz.generators.choices import chance, pick
from fuzz.generators.sql.expressions import Signature, syntax
from fuzz.sources.determinism.catalog import Catalog
from fuzz.sources.source import SourceContext
from fuzz.sources.typed.datatypes import BOUNDED, UNDERSTOOD, DataType, attempted, read_types

# The result type's key, and a template whose placeholders name the types of arguments. If an arm refuses one, it is not
# used.
SYNTAX: Final[tuple[tuple[str, str], ...]] = (
    ("numeric", "EXTRACT(year FROM {date})"),
    ("numeric", "EXTRACT(epoch FROM {interval})"),
    ("numeric", "EXTRACT(dow FROM {timestamp})"),
    ("numeric", "EXTRACT(milliseconds FROM {time})"),
    ("timestamp", "date_trunc('month', {timestamp})"),
    ("interval", "date_trunc('hour', {interval})"),
    ("timestamp", "date_bin('15 minutes', {timestamp}, TIMESTAMP '2001-01-01')"),
    ("timestamptz", "({timestamp} AT TIME ZONE 'Europe/Helsinki')"),
    ("timestamp", "({timestamptz} AT TIME ZONE INTERVAL '-03:00')"),
    ("bool", "(({date}, {date}) OVERLAPS ({date}, {date}))"),
    ("text", "to_char({timestamp}, 'YYYY-MM-DD HH24:MI:SS.MS')"),
    ("text", "to_char({numeric}, 'FM9990.00')"),
    ("text", "SUBSTRING({text} FROM 2 FOR 3)"),
    ("text", "SUBSTRING({text} SIMILAR '%#\"[a-m]+#\"%' ESCAPE '#')"),
    ("text", "OVERLAY({text} PLACING {text} FROM 2)"),
    ("int4", "POSITION({text} IN {text})"),
    ("text", "TRIM(BOTH 'a' FROM {text})"),
    ("bool", "({text} SIMILAR TO '[a-f]%')"),
    ("bool", "({text} LIKE 'a%')"),
    ("bool", "({text} ILIKE '%B_%')"),
    ("bool", "({text} ~ '^[a-f]+')"),
    ("text", "regexp_replace({text}, '[aeiou]', '-', 'g')"),
    ("text", "normalize({text}, NFC)"),
    ("bool", "({text} IS NFKC NORMALIZED)"),
    ("bool", "({bool} IS TRUE)"),
    ("bool", "({bool} IS NOT UNKNOWN)"),
    ("bool", "({jsonb} ? 'a')"),
    ("jsonb", "({jsonb})['a']"),
    ("jsonb", "jsonb_strip_nulls({jsonb})"),
    ("jsonb", "to_jsonb({text})"),
    ("jsonb", "to_jsonb({date})"),
    ("bool", "({text} IS JSON)"),
    ("bool", "({text} IS JSON OBJECT WITH UNIQUE KEYS)"),
    ("bool", "({jsonb} IS JSON ARRAY)"),
    ("json", "JSON_OBJECT('a': {int4}, 'b': {text} ABSENT ON NULL)"),
    ("jsonb", "JSON_OBJECT('a' VALUE {date}, 'b' VALUE {jsonb} RETURNING jsonb)"),
    ("json", "JSON_ARRAY({int4}, {text}, {bool} NULL ON NULL)"),
    ("jsonb", "JSON_ARRAY({numeric}, {jsonb} RETURNING jsonb)"),
    ("json", "JSON_SCALAR({numeric})"),
    ("text", "JSON_SERIALIZE({json} RETURNING text)"),
    ("bool", "JSON_EXISTS({jsonb}, '$.a')"),
    ("bool", "JSON_EXISTS({jsonb}, '$[*] ? (@ > $n)' PASSING {int4} AS n)"),
    ("text", "JSON_VALUE({jsonb}, '$.c')"),
    ("int4", "JSON_VALUE({jsonb}, '$.a' RETURNING int4 DEFAULT -1 ON EMPTY DEFAULT -2 ON ERROR)"),
    ("numeric", "JSON_VALUE({jsonb}, 'lax $[0]' RETURNING numeric NULL ON ERROR)"),
    ("jsonb", "JSON_QUERY({jsonb}, '$.a.b' WITH CONDITIONAL WRAPPER)"),
    ("jsonb", "JSON_QUERY({jsonb}, '$[*]' WITH WRAPPER EMPTY ARRAY ON EMPTY)"),
    ("int4", "ascii(CAST({text} AS varchar(3)))"),
    ("numeric", "CAST({float8} AS numeric(12, 3))"),
    ("timestamp", "make_timestamp(2024, 1 + abs({int4} % 12), 1, 0, 0, 0)"),
    ("date", "({date} + ({int4} % 400)::int4)"),
    ("int4", "width_bucket({numeric}, 0, 10, 5)"),
    ("int4", "cardinality({_int4})"),
    ("text", "array_to_string({_text}, ',', '*')"),
    ("bool", "(ROW({int4}, {text}) < ROW({int4}, {text}))"),
    ("bool", "(ROW({int4}, {bool}) IS NOT NULL)"),
    ("bool", "(ROW({date}, {int8}) IS DISTINCT FROM ROW({date}, {int8}))"),
    ("int4", "num_nulls({int4}, {text}, {jsonb})"),
)
_ARITHMETIC: Final = frozenset("+-*/%")


def call(name: str, form: str, arguments: tuple[str, ...], key: str, result: DataType | None) -> Signature:
    """Return the signature for a row of calls.sql. `result` is None if it is polymorphic."""
    is_long = result is None or result.long
    if form == "cast":
        return Signature(f"({{}})::{result.name if result else key}", arguments, key)
    if form == "prefix":
        return Signature(f"({name} {{}})", arguments, key)
    if form == "infix":
        divisor = "nullif({}, 0)" if name in "/%" else "{}"
        return Signature(f"({{}} {name} {divisor})", arguments, key, is_long and name not in _ARITHMETIC)
    return Signature(f"{name}({', '.join('{}' for _ in arguments)})", arguments, key, form == "set" or is_long)


_ELEMENTS: Final = frozenset({"anyelement", "anynonarray", "anyenum", "anycompatible", "anycompatiblenonarray"})
_ARRAYS: Final = frozenset({"anyarray", "anycompatiblearray"})
_RANGES: Final = frozenset({"anyrange", "anycompatiblerange"})
_MULTIRANGES: Final = frozenset({"anymultirange", "anycompatiblemultirange"})
POLYMORPHIC: Final = _ELEMENTS | _ARRAYS | _RANGES | _MULTIRANGES


class Polymorphism:
    """The types of an arm by their element types, for the resolution of polymorphic types."""

    def __init__(self, types: Mapping[str, DataType]) -> None:
        self._types = types
        self._made: dict[tuple[str, str], DataType] = {}
        for type_ in types.values():
            if type_.kind in "arm":
                self._made.setdefault((type_.kind, type_.parts[0]), type_)

    def element(self, type_: DataType) -> DataType:
        """Return the innermost element type of an array, range, multirange or domain; otherwise the type itself."""
        while type_.kind in "armd":
            type_ = self._types[type_.parts[0]]
        return type_

    def array(self, element: DataType) -> DataType | None:
        """Return the array type of an element type, or None."""
        return self._made.get(("a", element.key))

    def resolved(self, form: Signature, wanted: DataType, some: DataType) -> Signature | None:
        """Return the signature for the wanted result type, or None if there are no suitable types.

        If the result does not determine the element type, the element type of `some` is used.
        """
        if POLYMORPHIC.isdisjoint((form.result, *form.arguments)):
            return form if form.result == wanted.key else None
        element = self._element_of(form.result, wanted, some)
        if element is None or element.kind == "d":
            return None
        arguments = [self._argument(key, element, wanted) for key in form.arguments]
        found = tuple(each.key for each in arguments if each is not None)
        return replace(form, arguments=found, result=wanted.key) if len(found) == len(arguments) else None

    def _element_of(self, result: str, wanted: DataType, some: DataType) -> DataType | None:
        if result in _ELEMENTS:
            return wanted
        if (result in _ARRAYS and wanted.kind == "a") or (result in _RANGES and wanted.kind == "r"):
            return self._types[wanted.parts[0]]
        if result in _MULTIRANGES and wanted.kind == "m":
            return self.element(wanted)
        return self.element(some) if result == wanted.key else None

    def _argument(self, key: str, element: DataType, wanted: DataType) -> DataType | None:
        if key in _ELEMENTS:
            unfit = (key == "anyenum" and element.kind != "e") or (key.endswith("nonarray") and element.kind == "a")
            return None if unfit else element
        if key in _ARRAYS:
            return self.array(element)
        if key not in _RANGES | _MULTIRANGES:
            return self._types.get(key)
        range_ = self._range(element, wanted)
        return range_ if range_ is None or key in _RANGES else self._made.get(("m", range_.key))

    def _range(self, element: DataType, wanted: DataType) -> DataType | None:
        """Return the result's own range type if it fits, otherwise a range type over the element."""
        if wanted.kind == "m":
            wanted = self._types[wanted.parts[0]]
        is_over = wanted.kind == "r" and wanted.parts[0] == element.key
        return wanted if is_over else self._made.get(("r", element.key))


_CALLS: Final = Path(__file__).with_name("calls.sql").read_text()
_AGGREGATES: Final = Path(__file__).with_name("aggregates.sql").read_text()
_COLLATIONS: Final = """
    SELECT DISTINCT ON (collprovider, left(collname, 1)) quote_ident(collname) FROM pg_collation
    WHERE collnamespace = 'pg_catalog'::regnamespace AND collname <> 'default' AND collisdeterministic
      AND collencoding IN (-1, pg_char_to_encoding(getdatabaseencoding()))
    ORDER BY collprovider, left(collname, 1), collname COLLATE "C"
"""
_PARTIAL: Final = 3  # percentage of calls that fail for some values
_PROBED: Final = (12, 12, 6, 3)  # probed values per argument, by number of arguments
_TRIES: Final = 8


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate or window function.

    If `fit`, it does not depend on the order of rows, provided that equal values are identical.
    """

    name: str
    kind: str  # n: normal, o: ordered-set, h: hypothetical-set, w: window function
    direct: int  # number of direct arguments, which come first
    form: Signature
    fit: bool


@dataclass(frozen=True, eq=False)
class ServerCatalog:
    """All building blocks of expressions. Signatures in `partial` fail for some values."""

    types: Mapping[str, DataType]
    forms: tuple[Signature, ...]
    partial: frozenset[Signature]
    sets: tuple[Signature, ...]  # set-returning functions that never fail
    aggregates: tuple[Aggregate, ...]
    collations: tuple[str, ...]
    version: int  # such as 170011

    def in_scene(self, connection: psycopg.Connection[Any]) -> "ServerCatalog":
        """Return the catalog with the additional types of a scene. Raises psycopg.Error."""
        return replace(self, types=read_types(connection, self.types))

    @cached_property
    def polymorphism(self) -> Polymorphism:
        """Return the resolver of polymorphic types."""
        return Polymorphism(self.types)

    @cached_property
    def by_result(self) -> dict[str, tuple[list[Signature], list[Signature]]]:
        """Return signatures by the key of their result: those that never fail, and the others."""
        found: dict[str, tuple[list[Signature], list[Signature]]] = {}
        for form in self.forms:
            found.setdefault(form.result, ([], []))[form in self.partial].append(form)
        return found

    @cached_property
    def _polymorphic(self) -> list[Signature]:
        return [form for form in self.forms if form.result in POLYMORPHIC and form not in self.partial]

    def form(self, rng: random.Random, wanted: DataType, some: Sequence[DataType]) -> Signature | None:
        """Return a signature with the wanted result, preferably with arguments of `some` types, or None."""
        near = self.near(wanted, some)
        if near and chance(rng, 60):
            return pick(rng, near)
        total, partial = self.by_result.get(wanted.key, ([], []))
        options = partial if partial and chance(rng, _PARTIAL) else [*total, *self._polymorphic]
        for _ in range(_TRIES if options else 0):
            form = self.polymorphism.resolved(pick(rng, options), wanted, pick(rng, some))
            if form is not None:
                return form
        return None

    def near(self, wanted: DataType, some: Sequence[DataType]) -> Sequence[Signature]:
        """Return the signatures with the wanted result and arguments of `some` types, of functions that never fail."""
        return _near(self, wanted.key, frozenset(type_.key for type_ in some))


@lru_cache(maxsize=5_000)
def _near(catalog: ServerCatalog, wanted: str, keys: frozenset[str]) -> Sequence[Signature]:
    total, _ = catalog.by_result.get(wanted, ([], []))
    return [form for form in total if keys.issuperset(form.arguments)]


# Cached, because reading a catalog takes a second.
_offers: WeakKeyDictionary[SourceContext, ServerCatalog] = WeakKeyDictionary()


def catalog_of(target: SourceContext) -> ServerCatalog:
    """Return the catalog of the arm, without a scene. Raises ServerError."""
    if target not in _offers:
        with target.session(()) as connection:
            _offers[target] = _read_offer(connection)
    return _offers[target]


def _read_offer(connection: psycopg.Connection[Any]) -> ServerCatalog:
    """Return the catalog as read from the server. Raises psycopg.Error."""
    functions, types = Catalog.of(connection), read_types(connection, {})
    forms: list[Signature] = [syntax(*each) for each in SYNTAX]
    sets: list[Signature] = []
    known = types.keys() | POLYMORPHIC
    for oid, name, form, arguments, result in connection.execute(_CALLS):
        if (not oid or functions.fit(oid)) and known.issuperset((result, *arguments)):
            made = call(name, form, tuple(arguments), result, types.get(result))
            (sets if form == "set" else forms).append(made)
    forms += [
        Signature("({})::text", (key,), "text") for key in types if key not in ("text", "varchar", "bpchar", "name")
    ]
    aggregates = tuple(_aggregates(connection, functions))
    collations = tuple(name for (name,) in connection.execute(_COLLATIONS))
    catalog = ServerCatalog(types, (), frozenset(), (), aggregates, collations, connection.info.server_version)
    states = _probed(connection, catalog, forms)
    return replace(
        catalog,
        forms=tuple(form for form in forms if states.get(form, "")[:2] in UNDERSTOOD),
        partial=frozenset(form for form in forms if states.get(form)),
        sets=tuple(form for form, state in _probed(connection, catalog, sets).items() if not state),
    )


def _aggregates(connection: psycopg.Connection[Any], functions: Catalog) -> Iterator[Aggregate]:
    for oid, name, kind, direct, arguments, result in connection.execute(_AGGREGATES):
        yield Aggregate(name, kind, direct, Signature("", tuple(arguments), result), functions.fit(oid))


def _probed(
    connection: psycopg.Connection[Any], catalog: ServerCatalog, forms: Iterable[Signature]
) -> dict[Signature, str]:
    """Return for each signature an SQLSTATE that some argument values cause, or "" if none does."""
    probes = {form: probe for form in forms if (probe := _probe(catalog, form))}
    return dict(zip(probes, attempted(connection, list(probes.values())), strict=True))


def _probe(catalog: ServerCatalog, form: Signature) -> str:
    """Return a query that evaluates the signature for many combinations of values; "" if types are missing."""
    for wanted, some in product((form.result, "int4", "_int4", "int4range", "int4multirange"), ("int4", "text")):
        if wanted not in catalog.types:
            continue
        found = catalog.polymorphism.resolved(form, catalog.types[wanted], catalog.types[some])
        if found is not None and found.arguments:
            break
    else:
        return ""
    relations = []
    for n, key in enumerate(found.arguments):
        type_ = catalog.types[key]
        values = BOUNDED if form.small and type_.category == "N" else type_.values
        listed = ", ".join(f"({value}::{type_.name})" for value in values[: _PROBED[len(found.arguments) - 1]])
        relations.append(f"(VALUES {listed}) AS x{n} (v)")
    sql = found.sql([f"x{n}.v" for n, _ in enumerate(relations)])
    return f"SELECT count(q.v) FROM {', '.join(relations)}, LATERAL (SELECT {sql} AS v) AS q"
