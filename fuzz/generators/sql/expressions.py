"""Typed scalar expressions, from weighted constructors with a depth limit and a leaf that always succeeds.

The signature of an expression is an SQL template with argument and result types. No expression raises an error:
integers stay below about 100,000, and divisors are constants other than zero. No result depends on the order of rows. A
numeric always has one decimal digit, so equal values print equally.
"""

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from string import Formatter

from fuzz.generators.choices import Weighted, between, chance, first_made, pick
from fuzz.generators.sql.scope import Column, Scope
from fuzz.generators.sql.sqltypes import FAMILIES


@dataclass(frozen=True, slots=True)
class Signature:
    """A template with a placeholder {} per argument.

    Types are names: families of a generator's types, or keys of an arm's types, which may be polymorphic. `small`:
    numbers determine the size of the result, so they must be small.
    """

    template: str
    arguments: tuple[str, ...]
    result: str
    small: bool = False

    def sql(self, arguments: Sequence[str], **options: str) -> str:
        """Return the expression with these arguments, and values of the template's other placeholders."""
        return self.template.format(*arguments, **options)


def syntax(result: str, template: str, options: Collection[str] = ()) -> Signature:
    """Return the signature for a template whose placeholders name types, such as {text}, or one of the options."""
    parts = [(text, key or "") for text, key, _, _ in Formatter().parse(template)]
    written = "".join(text + (f"{{{key if key in options else ''}}}" if key else "") for text, key in parts)
    return Signature(written, tuple(key for _, key in parts if key and key not in options), result)


Maker = Callable[[random.Random, Scope, int], str | None]

_DEPTH = 2


def expression(rng: random.Random, scope: Scope, family: str, depth: int = _DEPTH) -> str:
    """Return an expression of a type family over the scope, which may be empty; it is safe as an operand."""
    if depth > 0 and chance(rng, 35):
        made = first_made(rng, EXPRESSIONS[family], rng, scope, depth)
        if made is not None:
            return made
    return leaf(rng, scope, family)


def leaf(rng: random.Random, scope: Scope, family: str) -> str:
    """Return a column of the family, or a constant if there is none."""
    column = any_column(rng, scope, family)
    if column is not None:
        return f"md5({column.sql})" if column.wide else column.sql
    return constant(rng, scope, family)


def any_column(rng: random.Random, scope: Scope, family: str) -> Column | None:
    """Return a random column of this level in the family, or None."""
    columns = scope.of_family(family)
    return pick(rng, columns) if columns else None


def constant(rng: random.Random, scope: Scope, family: str, near: Column | None = None) -> str:
    """Return a literal or a parameter, preferably a partition bound or a value of the column `near`."""
    params = [param for param in scope.params if param.family == family]
    if params and chance(rng, 40):
        return pick(rng, params).sql
    type_ = near.type if near else FAMILIES[family][0]
    if near and near.hints and chance(rng, 50):
        return type_.literal(pick(rng, near.hints))
    return type_.literal(between(rng, 0, near.domain if near else 20))


def _call(template: str, **options: Sequence[str]) -> Maker:
    """Return a constructor for a template. {int} is an operand of that family, and {op} one of the options `op`."""
    form = syntax("", template, options)

    def make(rng: random.Random, scope: Scope, depth: int) -> str:
        operands = [expression(rng, scope, family, depth - 1) for family in form.arguments]
        return form.sql(operands, **{name: pick(rng, values) for name, values in options.items()})

    return make


def _of_column(family: str, template: str) -> Maker:
    def make(rng: random.Random, scope: Scope, depth: int) -> str | None:
        column = any_column(rng, scope, family)
        return template.format(column.sql) if column else None

    return make


def _either(family: str) -> Maker:
    def make(rng: random.Random, scope: Scope, depth: int) -> str:
        function = pick(rng, ("coalesce", "coalesce", "greatest", "least", "nullif"))
        left, right = (expression(rng, scope, family, depth - 1) for _ in range(2))
        return f"{function}({left}, {right})"

    return make


def _cut_text(rng: random.Random, scope: Scope, depth: int) -> str:
    operand = expression(rng, scope, "text", depth - 1)
    return pick(rng, ("left({}, 4)", "lower({})", "reverse({})", "right({}, 1)")).format(operand)


def _printed(rng: random.Random, scope: Scope, depth: int) -> str:
    return f"({leaf(rng, scope, pick(rng, ('int', 'date', 'bool', 'uuid', 'numeric')))}::text)"


def _compared(rng: random.Random, scope: Scope, depth: int) -> str:
    family = pick(rng, ("int", "text", "int", "date", "numeric"))
    left, right = (expression(rng, scope, family, depth - 1) for _ in range(2))
    return f"({left} {pick(rng, ('=', '<', '>=', '<>', 'IS DISTINCT FROM'))} {right})"


def _null_test(rng: random.Random, scope: Scope, depth: int) -> str:
    operand = leaf(rng, scope, pick(rng, ("int", "text", "date")))
    return f"({operand} IS {pick(rng, ('NULL', 'NOT NULL'))})"


# Constructors of each type family. A new one is a line here, with a function if a template does not suffice.
EXPRESSIONS: dict[str, Weighted[Maker]] = {
    "int": Weighted(
        (30, _call("({int} {op} {int}::int4)", op="+-")),
        (15, _call("({int} {op} {divisor})", op="%/", divisor=("3", "10", "7", "2"))),
        (10, _call("({int} % 10 * ({int} % 7))")),
        (10, _of_column("text", "length({})")),
        (10, _of_column("date", "({} - DATE '2024-01-01')")),
        (8, _call("CASE WHEN {bool} THEN {int} ELSE {int} END")),
        (12, _either("int")),
    ),
    "numeric": Weighted(
        (30, _call("({numeric} {op} {other})", op="+-", other=("1.0", "0.5", "10.5"))),
        (20, _of_column("int", "({} * 0.5)")),
        (10, _call("abs({numeric})")),
        (10, _either("numeric")),
        (10, _call("CASE WHEN {bool} THEN {numeric} ELSE {numeric} END")),
    ),
    "text": Weighted(
        (20, _call("({text} || {text})")),
        (25, _cut_text),
        (15, _printed),
        (10, _either("text")),
        (10, _call("CASE WHEN {bool} THEN {text} ELSE {text} END")),
    ),
    "date": Weighted(
        (30, _call("({date} + ({int} % 30)::int4)")),
        (10, _either("date")),
        (10, _call("CASE WHEN {bool} THEN {date} ELSE {date} END")),
    ),
    "uuid": Weighted((1, lambda rng, scope, depth: constant(rng, scope, "uuid"))),
    "pair": Weighted((1, lambda rng, scope, depth: constant(rng, scope, "pair"))),
    "bool": Weighted(
        (40, _compared),
        (15, _null_test),
        (15, _call("({bool} {op} {bool})", op=("AND", "OR"))),
        (10, _call("(NOT {bool})")),
    ),
}
