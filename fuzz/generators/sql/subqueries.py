"""Conditions with subqueries: semi and anti joins, hashed and correlated subplans, initplans for run-time pruning."""

import random
from collections.abc import Callable

from fuzz.generators.choices import Weighted, chance, first_made, pick, some
from fuzz.generators.sql.items import RESCANS, item
from fuzz.generators.sql.predicates import likely_key, predicate, where
from fuzz.generators.sql.scope import Column, Relation, Scope
from fuzz.generators.sql.sqltypes import UNORDERED

Maker = Callable[[random.Random, Scope], str | None]

_COMPARISONS = 300_000  # upper bound of inner rows times outer rows, because a subplan may compare them all


def subquery(rng: random.Random, scope: Scope) -> str:
    """Return a condition with a subquery, or without one if no subquery fits."""
    return first_made(rng, SUBQUERIES, rng, scope) or predicate(rng, scope)


def _inside(rng: random.Random, scope: Scope, limit: int) -> tuple[Scope, Relation] | None:
    inner = scope.inner()
    relation = item(rng, inner, inner.alias(0))
    return None if scope.rows * relation.cost > limit else (inner.over((relation,), relation.rows), relation)


def _matching(rng: random.Random, scope: Scope, relation: Relation) -> tuple[Column, Column] | None:
    """Return a column of the scope and a comparable column of the relation, preferably of the same name."""
    column = likely_key(rng, scope)
    if column is None:
        return None
    same = [other for other in relation.columns if other.name == column.name and not other.wide]
    family = [other for other in relation.columns if other.family == column.family and not other.wide]
    others = same if same and chance(rng, 80) else family
    return (column, pick(rng, others)) if others else None


def _extra(rng: random.Random, scope: Scope, percent: int) -> list[str]:
    return [predicate(rng, scope)] if chance(rng, percent) else []


def _exists(rng: random.Random, scope: Scope) -> str | None:
    inside = _inside(rng, scope, _COMPARISONS)
    pair = inside and _matching(rng, scope, inside[1])
    if not inside or not pair:
        return None
    inner, relation = inside
    conditions = [f"{pair[0].sql} = {pair[1].sql}", *_extra(rng, inner, 35)]
    if chance(rng, 20):
        other = _matching(rng, scope, relation)
        conditions += [f"{other[0].sql} {pick(rng, ('<>', '<=', '='))} {other[1].sql}"] if other else []
    negation = "NOT " if chance(rng, 50) else ""
    return f"{negation}EXISTS (SELECT 1 FROM {relation.sql}{where(conditions)})"


def _in(rng: random.Random, scope: Scope) -> str | None:
    inside = _inside(rng, scope, _COMPARISONS)
    pair = inside and _matching(rng, scope, inside[1])
    if not inside or not pair:
        return None
    inner, relation = inside
    operator = pick(rng, ("IN", "IN", "NOT IN", "= ANY", "<> ALL"))
    return f"{pair[0].sql} {operator} (SELECT {pair[1].sql} FROM {relation.sql}{where(_extra(rng, inner, 40))})"


def _row_in(rng: random.Random, scope: Scope) -> str | None:
    inside = _inside(rng, scope, _COMPARISONS)
    if not inside:
        return None
    inner, relation = inside
    pairs = {pair for _ in range(3) if (pair := _matching(rng, scope, relation))}
    if len(pairs) < 2:
        return None
    chosen = sorted(pairs, key=lambda pair: (pair[0].sql, pair[1].sql))
    outside, within = (", ".join(column.sql for column in side) for side in zip(*chosen, strict=True))
    operator = pick(rng, ("IN", "NOT IN"))
    return f"({outside}) {operator} (SELECT {within} FROM {relation.sql}{where(_extra(rng, inner, 30))})"


def _initplan(rng: random.Random, scope: Scope) -> str | None:
    inside = _inside(rng, scope.over(scope.relations, 1), RESCANS)
    pair = inside and _matching(rng, scope, inside[1])
    if not inside or not pair or pair[1].family in UNORDERED:
        return None
    inner, relation = inside
    value = f"SELECT {pick(rng, ('max', 'min'))}({pair[1].sql}) FROM {relation.sql}{where(_extra(rng, inner, 50))}"
    return f"{pair[0].sql} {pick(rng, ('=', '<=', '>', '='))} ({value})"


def _array(rng: random.Random, scope: Scope) -> str | None:
    inside = _inside(rng, scope.over(scope.relations, 1), RESCANS)
    pair = inside and _matching(rng, scope, inside[1])
    if not inside or not pair or pair[0].type is not pair[1].type:
        return None
    inner, relation = inside
    rows = f"SELECT {pair[1].sql} FROM {relation.sql}{where(_extra(rng, inner, 50))} ORDER BY 1 LIMIT 5"
    return f"{pair[0].sql} = ANY (ARRAY({rows}))"


def _correlated(rng: random.Random, scope: Scope) -> str | None:
    inside = _inside(rng, scope, RESCANS)
    if not inside:
        return None
    inner, relation = inside
    pair, compared = _matching(rng, scope, relation), _matching(rng, scope, relation)
    if not pair or not compared or compared[1].family in UNORDERED:
        return None
    conditions = [f"{pair[0].sql} = {pair[1].sql}", *_extra(rng, inner, 30)]
    value = f"SELECT {pick(rng, ('max', 'min'))}({compared[1].sql}) FROM {relation.sql}{where(conditions)}"
    return f"{compared[0].sql} {pick(rng, ('>=', '<', '='))} ({value})"


def _either(rng: random.Random, scope: Scope) -> str | None:
    """Return a subquery below OR, which remains a subplan."""
    condition = first_made(rng, _SUBPLANS, rng, scope.over(scope.relations, scope.rows * 4))
    return condition and f"({condition} OR {predicate(rng, scope)})"


def _several(rng: random.Random, scope: Scope) -> str | None:
    """Return a semi or anti join with two inner relations."""
    inner = scope.inner()
    left, right = item(rng, inner, inner.alias(0)), item(rng, inner, inner.alias(1))
    common = some(rng, [column for column in right.columns if left.named(column.name) and not column.wide], 1)
    pair = _matching(rng, scope, left)
    if not common or not pair or scope.rows * (left.cost * common[0].fan + right.cost) > _COMPARISONS:
        return None
    kind = pick(rng, ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
    source = f"{left.sql} {kind} {right.sql} USING ({common[0].name})"
    return f"{pair[0].sql} {pick(rng, ('IN', 'NOT IN'))} (SELECT {pair[1].sql} FROM {source})"


SUBQUERIES: Weighted[Maker] = Weighted(
    (36, _exists), (22, _in), (5, _row_in), (12, _initplan), (4, _array), (8, _correlated), (6, _either), (7, _several)
)
_SUBPLANS: Weighted[Maker] = Weighted((50, _exists), (50, _in))
