"""Typed expressions: columns, values, calls of the arm's functions, and constructs that work for any type.

In canonical (`exact`) expressions, equal values have equal bits. They can therefore be grouped, sorted and compared.
"""

import random
from collections.abc import Callable, Sequence
from typing import Final

from fuzz.generators.choices import Weighted, between, chance, first_made, pick
from fuzz.generators.sql.scope import Relation
from fuzz.sources.typed.datatypes import BOUNDED, DataType
from fuzz.sources.typed.scope import TypedScope

Maker = Callable[[random.Random, TypedScope, DataType, int], str | None]

DEPTH: Final = 3
EVALUATED: Final = 20_000  # upper bound of a subquery's rows times its evaluations
# Conversions to the canonical form of a value, which keep the type.
_CANONICAL: Final = {"numeric": "trim_scale({})", "float4": "({} + '0'::float4)", "float8": "({} + '0'::float8)"}
_NUMBERS: Final = ("int2", "int4", "int8", "numeric")


def expression(rng: random.Random, scope: TypedScope, type_: DataType, depth: int = DEPTH) -> str:
    """Return an expression of exactly this type, safe as an operand."""
    if depth > 0 and chance(rng, 62):
        made = first_made(rng, _MAKERS, rng, scope, type_, depth)
        if made is not None:
            return made
    return leaf(rng, scope, type_)


def leaf(rng: random.Random, scope: TypedScope, type_: DataType) -> str:
    """Return a column of the type, a call over columns, or a value."""
    columns = scope.of_type(type_)
    if columns and chance(rng, 85):
        return pick(rng, columns)
    near = scope.columns and scope.catalog.near(type_, scope.types)
    if near and chance(rng, 70):
        form = pick(rng, near)
        types = [scope.catalog.types[key] for key in form.arguments]
        return form.sql([argument(rng, scope, each, 0, small=form.small) for each in types])
    return value(rng, type_)


def value(rng: random.Random, type_: DataType, *, edges: int = 3) -> str:
    """Return a value of the type, rarely NULL.

    With a probability of `edges` percent, it is an extreme value, which may cause errors.
    """
    if type_.edges and chance(rng, edges):
        return pick(rng, type_.edges)
    return f"NULL::{type_.name}" if chance(rng, 4) else pick(rng, type_.values)


def some_type(rng: random.Random, scope: TypedScope) -> DataType:
    """Return a type, mostly that of a column in the scope."""
    return pick(rng, scope.types) if chance(rng, 75) else pick(rng, list(scope.catalog.types.values()))


def is_comparable(type_: DataType) -> bool:
    """Return whether the type is sortable and has canonical expressions."""
    return type_.ordered and (type_.exact or type_.key in _CANONICAL)


def some_exact_type(rng: random.Random, scope: TypedScope) -> DataType:
    """Return a type that `exact` accepts, mostly that of a column in the scope."""
    own = [type_ for type_ in scope.types if is_comparable(type_)]
    if own and chance(rng, 80):
        return pick(rng, own)
    return pick(rng, [type_ for type_ in scope.catalog.types.values() if is_comparable(type_)])


def exact(rng: random.Random, scope: TypedScope, type_: DataType, depth: int = DEPTH) -> str:
    """Return a canonical expression of a comparable type."""
    return as_exact(expression(rng, scope, type_, depth), type_)


def as_exact(sql: str, type_: DataType) -> str:
    """Return the canonical form of an expression of a comparable type."""
    return sql if type_.exact else _CANONICAL[type_.key].format(sql)


def sort_key(sql: str, type_: DataType) -> str:
    """Return a sort key that differs for all distinguishable values of an expression of any type."""
    return sql if type_.exact and type_.ordered else f'(({sql})::text COLLATE "C")'


def _called(rng: random.Random, scope: TypedScope, type_: DataType, depth: int) -> str | None:
    form = scope.catalog.form(rng, type_, scope.types)
    if form is None:
        return None
    types = [scope.catalog.types[key] for key in form.arguments]
    return form.sql([argument(rng, scope, each, depth - 1, small=form.small) for each in types])


def argument(rng: random.Random, scope: TypedScope, type_: DataType, depth: int, *, small: bool) -> str:
    """Return an argument. If `small`, numbers are small."""
    if not small or not _is_number(scope, type_):
        return expression(rng, scope, type_, depth)
    if type_.kind == "a":
        return f"'{{{pick(rng, BOUNDED)}}}'::{type_.name}"
    if type_.key in _NUMBERS and chance(rng, 50):
        return f"abs({expression(rng, scope, type_, depth)} % '{between(rng, 2, 5)}'::{type_.name})"
    return f"'{pick(rng, BOUNDED)}'::{type_.name}"


def _is_number(scope: TypedScope, type_: DataType) -> bool:
    """Return whether a type is a number, or an array of numbers."""
    return (scope.catalog.types[type_.parts[0]] if type_.kind == "a" else type_).category == "N"


def _case(rng: random.Random, scope: TypedScope, type_: DataType, depth: int) -> str:
    truth = scope.catalog.types["bool"]
    then, other = (expression(rng, scope, type_, depth - 1) for _ in range(2))
    if chance(rng, 25):
        compared = some_exact_type(rng, scope)
        tested, equal = (expression(rng, scope, compared, depth - 1) for _ in range(2))
        return f"CASE {tested} WHEN {equal} THEN {then} ELSE {other} END"
    return f"CASE WHEN {expression(rng, scope, truth, depth - 1)} THEN {then} ELSE {other} END"


def _coalesced(rng: random.Random, scope: TypedScope, type_: DataType, depth: int) -> str:
    return f"coalesce({leaf(rng, scope, type_)}, {expression(rng, scope, type_, depth - 1)})"


def _compared(rng: random.Random, scope: TypedScope, type_: DataType, depth: int) -> str | None:
    if not type_.ordered:
        return None
    function = pick(rng, ("nullif", "greatest", "least"))
    return f"{function}({expression(rng, scope, type_, depth - 1)}, {expression(rng, scope, type_, depth - 1)})"


def _subquery(rng: random.Random, scope: TypedScope, type_: DataType, depth: int) -> str | None:
    """Return a subquery for the first value of a relation under a total order."""
    chosen = chosen_relation(rng, scope)
    if chosen is None:
        return None
    relation, inner = chosen
    made = expression(rng, inner, type_, depth - 1)
    condition = f" WHERE {expression(rng, inner, scope.catalog.types['bool'], depth - 1)}" if chance(rng, 70) else ""
    return f"(SELECT {made} FROM {relation.sql}{condition} ORDER BY {sort_key(made, type_)} LIMIT 1)"


def chosen_relation(rng: random.Random, scope: TypedScope) -> tuple[Relation[DataType], TypedScope] | None:
    """Return a relation small enough for repeated evaluation, and the scope over it; or None."""
    small = [each for each in scope.sources if each.rows * scope.rows <= EVALUATED]
    if not small or scope.level > 3:
        return None
    inner = scope.inner()
    relation = pick(rng, small).relation(inner.alias(0))
    return relation, inner.over((relation,), relation.rows)


def _collated(rng: random.Random, scope: TypedScope, type_: DataType, depth: int) -> str | None:
    if not type_.collated or scope.collation == '"default"':
        return None
    return f"({expression(rng, scope, type_, depth - 1)} COLLATE {scope.collation})"


def _element(rng: random.Random, scope: TypedScope, type_: DataType, depth: int) -> str | None:
    array = scope.catalog.polymorphism.array(type_)
    return f"({expression(rng, scope, array, depth - 1)})[{between(rng, 0, 3)}]" if array else None


def _field(rng: random.Random, scope: TypedScope, type_: DataType, depth: int) -> str | None:
    holders = [each for each in scope.catalog.types.values() if each.kind == "c" and type_.key in each.parts]
    if not holders:
        return None
    holder = pick(rng, holders)
    field = pick(rng, [name for name, key in zip(holder.fields, holder.parts, strict=True) if key == type_.key])
    return f"({expression(rng, scope, holder, depth - 1)}).{field}"


def _constructed(rng: random.Random, scope: TypedScope, type_: DataType, depth: int) -> str | None:
    """Return an array or a row constructor, or a slice of an array."""
    parts = [scope.catalog.types[part] for part in type_.parts]
    if type_.kind == "c":
        return f"ROW({_listed(rng, scope, parts, depth)})::{type_.name}"
    if type_.kind != "a" or scope.catalog.types[type_.parts[0]].kind == "a":
        return None
    if chance(rng, 30):
        return f"({expression(rng, scope, type_, depth - 1)})[{between(rng, 0, 2)}:{between(rng, 1, 3)}]"
    return f"ARRAY[{_listed(rng, scope, parts * between(rng, 1, 3), depth)}]::{type_.name}"


def _listed(rng: random.Random, scope: TypedScope, types: Sequence[DataType], depth: int) -> str:
    return ", ".join(expression(rng, scope, type_, depth - 1) for type_ in types)


_MAKERS: Final[Weighted[Maker]] = Weighted(
    (60, _called),
    (8, _case),
    (7, _coalesced),
    (6, _compared),
    (6, _subquery),
    (4, _collated),
    (5, _element),
    (5, _field),
    (12, _constructed),
)
