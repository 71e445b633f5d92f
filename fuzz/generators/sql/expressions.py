"""Typed scalar expressions, from weighted constructors with a depth limit and a leaf that always succeeds.

No expression raises an error: integers stay below about 100,000, and divisors are constants other than zero. No result
depends on the order of rows. A numeric always has one decimal digit, so equal values print equally.
"""

import random
from collections.abc import Callable

from fuzz.generators.choices import Weighted, between, chance, first_made, pick
from fuzz.generators.sql.scope import Column, Expr, Scope
from fuzz.generators.sql.sqltypes import BOOL, DATE, FAMILIES, INT4, INT8, NUMERIC, TEXT, Type

Maker = Callable[[random.Random, Scope, int], Expr | None]

_DEPTH = 2


def scalar(rng: random.Random, scope: Scope, family: str, depth: int = _DEPTH) -> Expr:
    """Return an expression of a type family over the scope, which may be empty."""
    if depth > 0 and chance(rng, 35):
        made = first_made(rng, SCALARS[family], rng, scope, depth)
        if made is not None:
            return made
    return leaf(rng, scope, family)


def leaf(rng: random.Random, scope: Scope, family: str) -> Expr:
    """Return a column of the family, or a constant if there is none."""
    column = any_column(rng, scope, family)
    if column is not None:
        return Expr(f"md5({column.sql})", TEXT) if column.wide else column.expr()
    return constant(rng, scope, family)


def any_column(rng: random.Random, scope: Scope, family: str) -> Column | None:
    """Return a random column of this level in the family, or None."""
    columns = scope.columns(family)
    return pick(rng, columns) if columns else None


def constant(rng: random.Random, scope: Scope, family: str, near: Column | None = None) -> Expr:
    """Return a literal or a parameter, preferably a partition bound or a value of the column `near`."""
    params = [param for param in scope.params if param.type.family == family]
    if params and chance(rng, 40):
        return pick(rng, params)
    type_ = near.type if near else FAMILIES[family][0]
    if near and near.hints and chance(rng, 50):
        return Expr(type_.literal(pick(rng, near.hints)), type_)
    return Expr(type_.literal(between(rng, 0, near.domain if near else 20)), type_)


def _arithmetic(rng: random.Random, scope: Scope, depth: int) -> Expr:
    left, right = scalar(rng, scope, "int", depth - 1), scalar(rng, scope, "int", depth - 1)
    return Expr(f"({left.sql} {pick(rng, '+-')} {right.sql}::int4)", INT8)


def _product(rng: random.Random, scope: Scope, depth: int) -> Expr:
    left, right = scalar(rng, scope, "int", depth - 1), scalar(rng, scope, "int", depth - 1)
    return Expr(f"({left.sql} % 10 * ({right.sql} % 7))", INT8)


def _quotient(rng: random.Random, scope: Scope, depth: int) -> Expr:
    operand = scalar(rng, scope, "int", depth - 1)
    return Expr(f"({operand.sql} {pick(rng, '%/')} {pick(rng, (3, 10, 7, 2))})", INT8)


def _length(rng: random.Random, scope: Scope, depth: int) -> Expr | None:
    column = any_column(rng, scope, "text")
    return Expr(f"length({column.sql})", INT4) if column else None


def _days(rng: random.Random, scope: Scope, depth: int) -> Expr | None:
    column = any_column(rng, scope, "date")
    return Expr(f"({column.sql} - DATE '2024-01-01')", INT4) if column else None


def _case(family: str) -> Maker:
    def make(rng: random.Random, scope: Scope, depth: int) -> Expr:
        when = scalar(rng, scope, "bool", depth - 1)
        then, other = scalar(rng, scope, family, depth - 1), scalar(rng, scope, family, depth - 1)
        return Expr(f"CASE WHEN {when.sql} THEN {then.sql} ELSE {other.sql} END", _widest(then, other))

    return make


def _either(family: str) -> Maker:
    def make(rng: random.Random, scope: Scope, depth: int) -> Expr:
        function = pick(rng, ("coalesce", "coalesce", "greatest", "least", "nullif"))
        left, right = scalar(rng, scope, family, depth - 1), scalar(rng, scope, family, depth - 1)
        return Expr(f"{function}({left.sql}, {right.sql})", _widest(left, right))

    return make


def _widest(left: Expr, right: Expr) -> Type:
    return left.type if left.type is right.type else _WIDEST[left.type.family]


_WIDEST = {"int": INT8, "numeric": NUMERIC, "text": TEXT, "date": DATE, "bool": BOOL}


def _step(rng: random.Random, scope: Scope, depth: int) -> Expr:
    operand = scalar(rng, scope, "numeric", depth - 1)
    return Expr(f"({operand.sql} {pick(rng, '+-')} {pick(rng, ('1.0', '0.5', '10.5'))})", NUMERIC)


def _halved(rng: random.Random, scope: Scope, depth: int) -> Expr | None:
    column = any_column(rng, scope, "int")
    return Expr(f"({column.sql} * 0.5)", NUMERIC) if column else None


def _absolute(rng: random.Random, scope: Scope, depth: int) -> Expr:
    return Expr(f"abs({scalar(rng, scope, 'numeric', depth - 1).sql})", NUMERIC)


def _joined_text(rng: random.Random, scope: Scope, depth: int) -> Expr:
    left, right = scalar(rng, scope, "text", depth - 1), scalar(rng, scope, "text", depth - 1)
    return Expr(f"({left.sql} || {right.sql})", TEXT)


def _cut_text(rng: random.Random, scope: Scope, depth: int) -> Expr:
    operand = scalar(rng, scope, "text", depth - 1)
    return Expr(pick(rng, ("left({}, 4)", "lower({})", "reverse({})", "right({}, 1)")).format(operand.sql), TEXT)


def _printed(rng: random.Random, scope: Scope, depth: int) -> Expr:
    family = pick(rng, ("int", "date", "bool", "uuid", "numeric"))
    return Expr(f"({leaf(rng, scope, family).sql}::text)", TEXT)


def _later(rng: random.Random, scope: Scope, depth: int) -> Expr:
    operand, days = scalar(rng, scope, "date", depth - 1), scalar(rng, scope, "int", depth - 1)
    return Expr(f"({operand.sql} + ({days.sql} % 30)::int4)", DATE)


def _compared(rng: random.Random, scope: Scope, depth: int) -> Expr:
    family = pick(rng, ("int", "text", "int", "date", "numeric"))
    left, right = scalar(rng, scope, family, depth - 1), scalar(rng, scope, family, depth - 1)
    return Expr(f"({left.sql} {pick(rng, ('=', '<', '>=', '<>', 'IS DISTINCT FROM'))} {right.sql})", BOOL)


def _null_test(rng: random.Random, scope: Scope, depth: int) -> Expr:
    operand = leaf(rng, scope, pick(rng, ("int", "text", "date")))
    return Expr(f"({operand.sql} IS {pick(rng, ('NULL', 'NOT NULL'))})", BOOL)


def _connected(rng: random.Random, scope: Scope, depth: int) -> Expr:
    left, right = scalar(rng, scope, "bool", depth - 1), scalar(rng, scope, "bool", depth - 1)
    return Expr(f"({left.sql} {pick(rng, ('AND', 'OR'))} {right.sql})", BOOL)


def _negated(rng: random.Random, scope: Scope, depth: int) -> Expr:
    return Expr(f"(NOT {scalar(rng, scope, 'bool', depth - 1).sql})", BOOL)


# Constructors of each type family. A new one is a function, and a line here.
SCALARS: dict[str, Weighted[Maker]] = {
    "int": Weighted(
        (30, _arithmetic), (15, _quotient), (10, _product), (10, _length), (10, _days), (8, _case("int")),
        (12, _either("int")),
    ),
    "numeric": Weighted((30, _step), (20, _halved), (10, _absolute), (10, _either("numeric")), (10, _case("numeric"))),
    "text": Weighted(
        (20, _joined_text), (25, _cut_text), (15, _printed), (10, _either("text")), (10, _case("text")),
    ),
    "date": Weighted((30, _later), (10, _either("date")), (10, _case("date"))),
    "uuid": Weighted((1, lambda rng, scope, depth: constant(rng, scope, "uuid"))),
    "pair": Weighted((1, lambda rng, scope, depth: constant(rng, scope, "pair"))),
    "bool": Weighted((40, _compared), (15, _null_test), (15, _connected), (10, _negated)),
}  # fmt: skip
