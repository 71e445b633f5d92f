"""Offer: what an arm's catalogs offer for expressions, as far as that may be compared, and what works at all."""

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
from fuzz.sources.composing.datatypes import DataType, read_types
from fuzz.sources.composing.forms import Form, call, syntax
from fuzz.sources.composing.polymorphism import POLYMORPHIC, Polymorphism
from fuzz.sources.composing.probing import UNDERSTOOD, attempted
from fuzz.sources.composing.syntax import SYNTAX
from fuzz.sources.composing.values import BOUNDED
from fuzz.sources.legality.catalog import Catalog
from fuzz.sources.target import Target

_CALLS: Final = Path(__file__).with_name("calls.sql").read_text()
_AGGREGATES: Final = Path(__file__).with_name("aggregates.sql").read_text()
_COLLATIONS: Final = """
    SELECT DISTINCT ON (collprovider, left(collname, 1)) quote_ident(collname) FROM pg_collation
    WHERE collnamespace = 'pg_catalog'::regnamespace AND collname <> 'default' AND collisdeterministic
      AND collencoding IN (-1, pg_char_to_encoding(getdatabaseencoding()))
    ORDER BY collprovider, left(collname, 1), collname COLLATE "C"
"""
_PARTIAL: Final = 3  # percent of the calls: of what fails for some values
_PROBED: Final = (12, 12, 6, 3)  # values of each argument, by their number
_TRIES: Final = 8


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate or window function. `fit`: it needs no order of rows, if equal arguments are the same."""

    name: str
    kind: str  # n: normal, o: ordered-set, h: hypothetical-set, w: window function
    direct: int  # number of direct arguments, which come first
    form: Form
    fit: bool


@dataclass(frozen=True, eq=False)
class Offer:
    """What there is to compose expressions of. `partial` forms are those that fail for some values."""

    types: Mapping[str, DataType]
    forms: tuple[Form, ...]
    partial: frozenset[Form]
    sets: tuple[Form, ...]  # return sets, and fail for no value
    aggregates: tuple[Aggregate, ...]
    collations: tuple[str, ...]
    version: int  # as 170011

    def in_scene(self, connection: psycopg.Connection[Any]) -> "Offer":
        """Return the offer with the types of a scene. Raises psycopg.Error."""
        return replace(self, types=read_types(connection, self.types))

    @cached_property
    def polymorphism(self) -> Polymorphism:
        """Return what its types are made of."""
        return Polymorphism(self.types)

    @cached_property
    def by_result(self) -> dict[str, tuple[list[Form], list[Form]]]:
        """Return forms by the key of their result: those that never fail, and the others."""
        found: dict[str, tuple[list[Form], list[Form]]] = {}
        for form in self.forms:
            found.setdefault(form.result, ([], []))[form in self.partial].append(form)
        return found

    @cached_property
    def _polymorphic(self) -> list[Form]:
        return [form for form in self.forms if form.result in POLYMORPHIC and form not in self.partial]

    def form(self, rng: random.Random, wanted: DataType, some: Sequence[DataType]) -> Form | None:
        """Return a form of the type, preferably with arguments of `some` types; None where there is none."""
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

    def near(self, wanted: DataType, some: Sequence[DataType]) -> Sequence[Form]:
        """Return the forms of the type that never fail and whose arguments are all of `some` types."""
        return _near(self, wanted.key, frozenset(type_.key for type_ in some))


@lru_cache(maxsize=5_000)
def _near(offer: Offer, wanted: str, keys: frozenset[str]) -> Sequence[Form]:
    total, _ = offer.by_result.get(wanted, ([], []))
    return [form for form in total if keys.issuperset(form.arguments)]


_offers: WeakKeyDictionary[Target, Offer] = WeakKeyDictionary()  # reading one takes a second


def offer_of(target: Target) -> Offer:
    """Return what a target's arm offers, without a scene. Raises ServerError."""
    if target not in _offers:
        with target.played(()) as connection:
            _offers[target] = _read_offer(connection)
    return _offers[target]


def _read_offer(connection: psycopg.Connection[Any]) -> Offer:
    """Read it. Raises psycopg.Error."""
    catalog, types = Catalog.of(connection), read_types(connection, {})
    forms: list[Form] = [syntax(*each) for each in SYNTAX]
    sets: list[Form] = []
    known = types.keys() | POLYMORPHIC
    for oid, name, form, arguments, result in connection.execute(_CALLS):
        if (not oid or catalog.fit(oid)) and known.issuperset((result, *arguments)):
            made = call(name, form, tuple(arguments), result, types.get(result))
            (sets if form == "set" else forms).append(made)
    forms += [Form("({})::text", (key,), "text") for key in types if key not in ("text", "varchar", "bpchar", "name")]
    aggregates = tuple(_aggregates(connection, catalog))
    collations = tuple(name for (name,) in connection.execute(_COLLATIONS))
    offer = Offer(types, (), frozenset(), (), aggregates, collations, connection.info.server_version)
    states = _probed(connection, offer, forms)
    return replace(
        offer,
        forms=tuple(form for form in forms if states.get(form, "")[:2] in UNDERSTOOD),
        partial=frozenset(form for form in forms if states.get(form)),
        sets=tuple(form for form, state in _probed(connection, offer, sets).items() if not state),
    )


def _aggregates(connection: psycopg.Connection[Any], catalog: Catalog) -> Iterator[Aggregate]:
    for oid, name, kind, direct, arguments, result in connection.execute(_AGGREGATES):
        yield Aggregate(name, kind, direct, Form("", tuple(arguments), result), catalog.fit(oid))


def _probed(connection: psycopg.Connection[Any], offer: Offer, forms: Iterable[Form]) -> dict[Form, str]:
    """Return for each form an SQLSTATE that it has for some values of its arguments; empty where there is none."""
    probes = {form: probe for form in forms if (probe := _probe(offer, form))}
    return dict(zip(probes, attempted(connection, list(probes.values())), strict=True))


def _probe(offer: Offer, form: Form) -> str:
    """Return a query of the form with many combinations of values; empty where types are lacking."""
    for wanted, some in product((form.result, "int4", "_int4", "int4range", "int4multirange"), ("int4", "text")):
        if wanted not in offer.types:
            continue
        found = offer.polymorphism.resolved(form, offer.types[wanted], offer.types[some])
        if found is not None and found.arguments:
            break
    else:
        return ""
    relations = []
    for n, key in enumerate(found.arguments):
        type_ = offer.types[key]
        values = BOUNDED if form.small and type_.category == "N" else type_.values
        listed = ", ".join(f"({value}::{type_.name})" for value in values[: _PROBED[len(found.arguments) - 1]])
        relations.append(f"(VALUES {listed}) AS x{n} (v)")
    sql = found.sql([f"x{n}.v" for n, _ in enumerate(relations)])
    return f"SELECT count(q.v) FROM {', '.join(relations)}, LATERAL (SELECT {sql} AS v) AS q"
