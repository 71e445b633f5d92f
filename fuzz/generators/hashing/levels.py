"""FROM lists around one join of a given kind by the case's key, and other joins nested in one of its sides."""

import random
from dataclasses import replace

from fuzz.generators.choices import Weighted, chance, pick, some
from fuzz.generators.hashing.axes import Axes
from fuzz.generators.hashing.scene import Scene, key_of
from fuzz.generators.hashing.sides import Side, side_of
from fuzz.generators.relational.expressions import constant
from fuzz.generators.relational.joins import Joined
from fuzz.generators.relational.predicates import predicate, where
from fuzz.generators.relational.queries import Level
from fuzz.generators.relational.scope import Column, Relation, Scope

KINDS = Weighted(
    (18, "left"), (12, "inner"), (16, "full"), (14, "right"), (10, "semi"), (16, "anti"), (4, "not_in")
)  # fmt: skip
_KINDS_POOLED = Weighted((14, "left"), (30, "inner"), (4, "full"), (28, "right"), (16, "semi"), (8, "anti"))
_NESTED = Weighted((60, 2), (30, 3), (10, 4))
_MOST = 20_000  # rows of a FROM list, as an upper bound
_COMPARED = 200_000  # pairs of rows that NOT IN may compare, since its subplan is not hashed in little memory
_SQL = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN"}


def draw_kind(rng: random.Random, axes: Axes) -> str:
    """Return the kind of a join: in a pooled scene mostly one that may share a filter."""
    return (_KINDS_POOLED if axes.pooled else KINDS).pick(rng)


def level(rng: random.Random, scene: Scene, scope: Scope, kind: str, most: int, parameter: str = "") -> Level:
    """Return a FROM list of two to `most` relations whose last join is of this kind, with its WHERE.

    `parameter`, SQL of an integer from an outer level, is compared with somewhere, so that each value needs a rescan.
    """
    inside = kind in ("semi", "anti", "not_in") and not (kind == "anti" and chance(rng, 25))
    left, right = _sides(rng, scene, scope, min(most, _NESTED.pick(rng)), inside=inside)
    if inside:
        return _filtered(rng, scene.axes, scope, kind, (left, right), parameter)
    side, missing = _attached(rng, scene.axes, left, right, kind, parameter)
    above = scope.over(side.relations, side.rows)
    conditions = _conditions(rng, above, parameter)
    if missing:
        conditions.append(f"{missing} IS NULL")
    return Level(above, Joined(side.sql, side.relations, side.rows, side.kinds), f" FROM {side.sql}{where(conditions)}")


def _conditions(rng: random.Random, scope: Scope, parameter: str) -> list[str]:
    conditions = [predicate(rng, scope)] if chance(rng, 20) else []
    if parameter and chance(rng, 50):
        conditions.append(f"{pick(rng, _integers(scope.relations)).sql} {pick(rng, ('>=', '<>', '<'))} {parameter}")
    return conditions


def _sides(rng: random.Random, scene: Scene, scope: Scope, count: int, *, inside: bool) -> tuple[Side, Side]:
    """Return the two sides of a join, one of them a join in turn where there are more than two relations.

    At most one is of a heavy table. What stands inside EXISTS or IN takes its aliases from the level below.
    """
    heavy = [source for source in scene.sources if source not in scene.light]
    first = pick(rng, heavy) if heavy and chance(rng, 60) else pick(rng, scene.sources)
    others = [source for source in scene.light if source.name != first.name]
    drawn = [first, *some(rng, others, count - 1)]
    alone = drawn.pop(rng.randrange(len(drawn)))
    tree: Side | None = None
    for n, source in enumerate(drawn):
        side = side_of(rng, scene.axes, source.relation(scope.alias(n)))
        tree = side if tree is None else _nested(rng, scene.axes, tree, side)
    assert tree is not None
    below = scope.inner() if inside else scope
    single = side_of(rng, scene.axes, alone.relation(below.alias(0 if inside else len(drawn))))
    return (tree, single) if inside or chance(rng, 50) else (single, tree)


def _nested(rng: random.Random, axes: Axes, left: Side, right: Side) -> Side:
    side, _ = _attached(rng, axes, left, right, pick(rng, ("inner", "left", "right", "full")), "")
    return replace(side, sql=f"({side.sql})") if side.rows <= _MOST else left


def _attached(rng: random.Random, axes: Axes, left: Side, right: Side, kind: str, parameter: str) -> tuple[Side, str]:
    """Return the sides joined, and the column that must be NULL if they are joined for an anti join."""
    condition, column = _condition(rng, axes, left.relations, right.relations, parameter)
    words = _SQL["left" if kind == "anti" else kind]
    matched = min(left.rows * right.fan, right.rows * left.fan)
    alone = (left.rows if kind in ("left", "full", "anti") else 0) + (right.rows if kind in ("right", "full") else 0)
    side = Side(
        f"{left.sql} {words} {right.sql} ON {condition}",
        left.relations + right.relations,
        matched + alone,
        left.fan * right.fan,
        (*left.kinds, *right.kinds, kind),
    )
    return side, column if kind == "anti" else ""


def _filtered(
    rng: random.Random, axes: Axes, scope: Scope, kind: str, sides: tuple[Side, Side], parameter: str
) -> Level:
    """Return the left side without those rows that have a match in the right one, or without the others."""
    left, right = sides
    above = scope.over(left.relations, left.rows)
    if kind == "not_in":
        within, match = _listed(rng, left, right)
        matching = f"{match} NOT IN {within}"
    elif chance(rng, 35):
        matching = _in(rng, axes, above, left, right, negated=kind == "anti")
    else:
        condition, _ = _condition(rng, axes, left.relations, right.relations, parameter)
        wide = [column.sql for relation in right.relations for column in relation.columns if column.wide]
        if wide and chance(rng, 45):  # so that the hashed rows are wide, though none of them is shown
            condition += f" AND length({wide[0]}) > {pick(rng, _integers(left.relations)).sql}"
        matching = f"{'NOT ' if kind == 'anti' else ''}EXISTS (SELECT 1 FROM {right.sql} WHERE {condition})"
    conditions = [*_conditions(rng, above, parameter), matching]
    joined = Joined(left.sql, left.relations, left.rows, (*left.kinds, kind))
    return Level(above, joined, f" FROM {left.sql}{where(conditions)}")


def _in(rng: random.Random, axes: Axes, scope: Scope, left: Side, right: Side, *, negated: bool) -> str:
    """Return IN or = ANY; negated it is an anti join only where it is written as NOT EXISTS."""
    outer, inner = (key_of(pick(rng, side.relations).columns) for side in (left, right))
    extra = [predicate(rng, scope.over(right.relations, right.rows))] if chance(rng, 40) else []
    if negated:
        return f"NOT EXISTS (SELECT FROM {right.sql}{where([f'{inner.sql} = {outer.sql}', *extra])})"
    return f"{outer.sql} {pick(rng, ('IN', '= ANY'))} (SELECT {inner.sql} FROM {right.sql}{where(extra)})"


def _listed(rng: random.Random, left: Side, right: Side) -> tuple[str, str]:
    """Return a short list of keys, perhaps with a NULL in it, and the key that it is for."""
    relation = right.relations[0]
    inner = key_of(relation.columns)
    numbers = relation.named("i1")
    assert numbers is not None
    conditions = [f"{numbers.sql} <= {max(1, min(relation.rows, _COMPARED // max(1, left.rows)))}"]
    if chance(rng, 70):
        conditions.append(f"{inner.sql} IS NOT NULL")
    return f"(SELECT {inner.sql} FROM {right.sql}{where(conditions)})", key_of(pick(rng, left.relations).columns).sql


def _integers(relations: tuple[Relation, ...]) -> list[Column]:
    return [column for relation in relations for column in relation.columns if column.name in ("i2", "i3")]


def _condition(
    rng: random.Random, axes: Axes, left: tuple[Relation, ...], right: tuple[Relation, ...], parameter: str
) -> tuple[str, str]:
    """Return a join condition, and its column on the right, which is strict."""
    ours, theirs = pick(rng, left), pick(rng, right)
    a, b = key_of(ours.columns).sql, key_of(theirs.columns).sql
    form = pick(rng, axes.key.forms) if chance(rng, 8 if axes.bare else 20) else "{}"
    sql = f"{form.format(a)} = {form.format(b)}"
    seconds = [relation.named("k2") for relation in (ours, theirs)]
    if all(seconds) and chance(rng, 22):
        sql += " AND " + " = ".join(column.sql for column in seconds if column)
    if chance(rng, 25):
        sql += f" AND {_beyond(rng, left, right)}"
    if parameter and chance(rng, 60):
        column = pick(rng, _integers(pick(rng, (left, right, right))))
        sql += f" AND {column.sql} {pick(rng, ('<>', '>='))} {parameter}"
    return sql, b


def _beyond(rng: random.Random, left: tuple[Relation, ...], right: tuple[Relation, ...]) -> str:
    """Return a condition that is no hash clause: over both sides, or one."""
    if chance(rng, 40):
        return predicate(rng, Scope(()).over(pick(rng, (left, right)), 1))
    a, b = pick(rng, _integers(left)), pick(rng, _integers(right))
    limit = constant(rng, Scope(()), "int", a).sql
    return pick(
        rng, (f"{a.sql} <> {b.sql}", f"{a.sql} + {b.sql} > {limit}", f"({a.sql} < {b.sql} OR {b.sql} = {limit})")
    )
