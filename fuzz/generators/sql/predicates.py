"""Conditions without subqueries, some of which prune partitions or mislead the planner's estimates."""

import random
from collections.abc import Callable

from fuzz.generators.choices import Weighted, between, first_made, pick, some
from fuzz.generators.sql.expressions import constant, expression, leaf
from fuzz.generators.sql.scope import Column, Scope

Maker = Callable[[random.Random, Scope], str | None]


def predicate(rng: random.Random, scope: Scope) -> str:
    """Return a condition over the scope's relations, usable as an operand of AND and NOT."""
    return first_made(rng, PREDICATES, rng, scope) or expression(rng, scope, "bool")


def where(conditions: list[str]) -> str:
    """Return a WHERE clause with a leading space; "" without conditions."""
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def likely_key(rng: random.Random, scope: Scope) -> Column | None:
    """Return a random column, a partition key in half of the cases; None if there is none."""
    if not scope.relations:
        return None
    relation = pick(rng, scope.relations)
    columns = relation.keys if relation.keys and rng.randrange(2) else relation.columns
    narrow = [column for column in columns if not column.wide]
    return pick(rng, narrow) if narrow else None


def _compared(rng: random.Random, scope: Scope) -> str | None:
    column = likely_key(rng, scope)
    if column is None:
        return None
    return f"{column.sql} {_OPERATORS.pick(rng)} {constant(rng, scope, column.family, column)}"


def _listed(rng: random.Random, scope: Scope) -> str | None:
    column = likely_key(rng, scope)
    if column is None:
        return None
    values = [constant(rng, scope, column.family, column) for _ in range(between(rng, 2, 6))]
    return pick(rng, ("{} IN ({})", "{} IN ({})", "{} = ANY (ARRAY[{}])", "{} NOT IN ({})")).format(
        column.sql, ", ".join(values)
    )


def _between(rng: random.Random, scope: Scope) -> str | None:
    column = likely_key(rng, scope)
    if column is None:
        return None
    low, high = (constant(rng, scope, column.family, column) for _ in range(2))
    return f"{column.sql} BETWEEN {pick(rng, ('', 'SYMMETRIC '))}{low} AND {high}"


def _null(rng: random.Random, scope: Scope) -> str | None:
    column = likely_key(rng, scope)
    return None if column is None else f"{column.sql} IS {pick(rng, ('NOT NULL', 'NOT NULL', 'NULL'))}"


def _hidden(rng: random.Random, scope: Scope) -> str | None:
    """Return a condition that holds for most rows, although the planner, without statistics for it, assumes few."""
    columns = scope.of_family("int")
    if not columns:
        return None
    column = pick(rng, columns).sql
    return pick(
        rng,
        (
            f"({column} * 2) % 2 = 0",
            f"coalesce({column}, 1) + 1 = coalesce({column}, 1) + 1 - ({column} * 0)",
            f"({column} * 6) % 3 = 0",
            f"{column} / 1 <= {column} % 10000",
            f"{column} % 2 = 1",
        ),
    )


def _columns(rng: random.Random, scope: Scope) -> str | None:
    family = pick(rng, ("int", "int", "text", "date"))
    pair = some(rng, scope.of_family(family), 2)
    if len(pair) < 2:
        return None
    return f"{pair[0].sql} {pick(rng, ('<>', '<', '=', '>='))} {pair[1].sql}"


def _row(rng: random.Random, scope: Scope) -> str | None:
    columns = [column for column in scope.of_family("int") if not column.wide]
    pair = some(rng, columns, 2)
    if len(pair) < 2:
        return None
    left, right = (constant(rng, scope, "int", column) for column in pair)
    return f"({pair[0].sql}, {pair[1].sql}) {pick(rng, ('<', '>=', '='))} ({left}, {right})"


def _either(rng: random.Random, scope: Scope) -> str:
    return f"({predicate(rng, scope)} OR {predicate(rng, scope)})"


def _negated(rng: random.Random, scope: Scope) -> str:
    return f"NOT ({predicate(rng, scope)})"


def _tested(rng: random.Random, scope: Scope) -> str:
    """Return a boolean test of a condition. Unlike the condition, it may hold if some relation has only NULLs."""
    form = pick(rng, ("{}", "{} AND {}", "{} AND {}", "{} OR {}"))
    condition = form.format(*(predicate(rng, scope) for _ in range(form.count("{}"))))
    return f"({condition}) IS {pick(rng, ('', 'NOT '))}{pick(rng, ('TRUE', 'FALSE', 'UNKNOWN'))}"


def _boolean(rng: random.Random, scope: Scope) -> str:
    return expression(rng, scope, "bool")


def _like(rng: random.Random, scope: Scope) -> str | None:
    if not scope.of_family("text"):
        return None
    return f"{leaf(rng, scope, 'text')} {pick(rng, ('LIKE', 'NOT LIKE'))} '{pick(rng, ('k0%', '%1%', 'k00_2'))}'"


_OPERATORS = Weighted((25, ">="), (25, "<"), (12, "<>"), (20, "="), (9, ">"), (9, "<="))
PREDICATES: Weighted[Maker] = Weighted(
    (40, _compared), (12, _listed), (10, _between), (8, _null), (22, _hidden), (8, _columns), (4, _row),
    (6, _either), (3, _negated), (4, _tested), (8, _boolean), (3, _like),
)  # fmt: skip
