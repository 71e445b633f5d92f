"""Predicates: comparisons, others of the grammar, and subqueries of all kinds."""

import random
from collections.abc import Callable
from typing import Final

from fuzz.generators.choices import Weighted, between, chance, first_made, pick
from fuzz.generators.sql.scope import Relation
from fuzz.sources.typed.datatypes import DataType
from fuzz.sources.typed.expressions import chosen_relation, expression, leaf, some_exact_type, some_type
from fuzz.sources.typed.scope import TypedScope

Maker = Callable[[random.Random, TypedScope], str | None]

_COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=")


def predicate(rng: random.Random, scope: TypedScope) -> str:
    """Return SQL of a truth value."""
    return first_made(rng, _MAKERS, rng, scope) or _any(rng, scope)


def maybe_where(rng: random.Random, scope: TypedScope, percent: int) -> str:
    """Return a WHERE clause with a probability of `percent`, otherwise ""."""
    return f" WHERE {predicate(rng, scope)}" if chance(rng, percent) else ""


def _any(rng: random.Random, scope: TypedScope) -> str:
    return expression(rng, scope, scope.catalog.types["bool"])


def _compared(rng: random.Random, scope: TypedScope) -> str:
    type_ = some_exact_type(rng, scope)
    operator = pick(rng, (*_COMPARISONS, "IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
    return f"({expression(rng, scope, type_, 2)} {operator} {expression(rng, scope, type_, 1)})"


def _between(rng: random.Random, scope: TypedScope) -> str:
    type_ = some_exact_type(rng, scope)
    tested, low, high = expression(rng, scope, type_, 1), leaf(rng, scope, type_), leaf(rng, scope, type_)
    return f"({tested} {pick(rng, ('', 'NOT '))}BETWEEN {pick(rng, ('', 'SYMMETRIC '))}{low} AND {high})"


def _listed(rng: random.Random, scope: TypedScope) -> str:
    type_ = some_exact_type(rng, scope)
    values = ", ".join(leaf(rng, scope, type_) for _ in range(between(rng, 1, 5)))
    tested = expression(rng, scope, type_, 1)
    if type_.kind == "a" or chance(rng, 50):  # for arrays, because an array of arrays has other elements
        return f"({tested} {pick(rng, ('IN', 'NOT IN'))} ({values}))"
    return f"({tested} {pick(rng, _COMPARISONS)} {pick(rng, ('ANY', 'ALL'))} (ARRAY[{values}]))"


def _null(rng: random.Random, scope: TypedScope) -> str:
    return f"({expression(rng, scope, some_type(rng, scope), 1)} IS {pick(rng, ('NULL', 'NOT NULL'))})"


def _connected(rng: random.Random, scope: TypedScope) -> str:
    parts = [predicate(rng, scope) for _ in range(2)]
    return f"({pick(rng, (' AND ', ' OR ')).join(parts)})"


def _negated(rng: random.Random, scope: TypedScope) -> str:
    return f"(NOT {predicate(rng, scope)})"


def _reading(make: Callable[[random.Random, TypedScope, Relation[DataType], TypedScope], str]) -> Maker:
    """Return a maker of conditions with a subquery. `make` gets the relation, and the scope over it."""

    def maker(rng: random.Random, scope: TypedScope) -> str | None:
        chosen = chosen_relation(rng, scope)
        return make(rng, scope, *chosen) if chosen else None

    return maker


def _exists(rng: random.Random, _scope: TypedScope, relation: Relation[DataType], inner: TypedScope) -> str:
    return f"({pick(rng, ('', 'NOT '))}EXISTS (SELECT 1 FROM {relation.sql} WHERE {predicate(rng, inner)}))"


def _in(rng: random.Random, scope: TypedScope, relation: Relation[DataType], inner: TypedScope) -> str:
    type_ = some_exact_type(rng, inner)
    inside = inner.only(relation) if chance(rng, 50) else inner
    operator = pick(rng, ("IN", "NOT IN", "= ANY", "<> ALL", ">= ALL", "< ANY"))
    made = expression(rng, inside, type_, 1)
    tested = expression(rng, scope, type_, 1)
    return f"({tested} {operator} (SELECT {made} FROM {relation.sql}{maybe_where(rng, inside, 60)}))"


def _row_in(rng: random.Random, scope: TypedScope, relation: Relation[DataType], inner: TypedScope) -> str:
    types = [some_exact_type(rng, inner) for _ in range(2)]
    outside, within = (", ".join(expression(rng, each, type_, 1) for type_ in types) for each in (scope, inner))
    operator = pick(rng, ("IN", "NOT IN"))
    return f"(({outside}) {operator} (SELECT {within} FROM {relation.sql}{maybe_where(rng, inner, 50)}))"


_MAKERS: Final[Weighted[Maker]] = Weighted(
    (30, _any),
    (30, _compared),
    (5, _between),
    (8, _listed),
    (5, _null),
    (12, _connected),
    (4, _negated),
    (8, _reading(_exists)),
    (7, _reading(_in)),
    (2, _reading(_row_in)),
)
