"""Join trees. Each relation is joined to the previous ones by a condition that limits the size of the result."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from fuzz.generators.choices import Weighted, chance, first_made, pick, shuffled, some
from fuzz.generators.sql.items import item, lateral
from fuzz.generators.sql.predicates import predicate
from fuzz.generators.sql.scope import Column, Relation, Scope

PAIRS = 800_000  # upper bound of the pairs of rows that a nested loop compares
LIMITS = Weighted((75, 3_000), (20, 10_000), (5, 30_000))  # upper bounds of the rows of a tree
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Joined:
    """A FROM list: SQL, relations in scope, upper bound of rows, and kinds of joins."""

    sql: str
    relations: tuple[Relation, ...]
    rows: int
    kinds: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # columns whose IS NULL turns a left join into an anti join


@dataclass(frozen=True, slots=True)
class Condition:
    """A join condition. At most `fan` rows of the new relation match one row of the tree."""

    sql: str  # including ON or USING
    fan: int
    prefix: str = ""  # NATURAL or empty
    hashable: bool = True  # whether a full join is possible
    column: str = ""  # column of the new relation under a strict operator


def join_tree(rng: random.Random, scope: Scope, count: int) -> Joined:
    """Return a tree of up to `count` relations; it has fewer if every attempt to add one exceeds the limit of rows."""
    first = item(rng, scope, scope.alias(0))
    tree = Joined(first.sql, (first,), first.rows)
    limit = LIMITS.pick(rng)
    for n in range(1, count):
        tree = _extended(rng, scope, tree, scope.alias(n), limit, tries=_TRIES * max(1, count - 4))
    return tree


def _extended(rng: random.Random, scope: Scope, tree: Joined, alias: str, limit: int, tries: int) -> Joined:
    for _ in range(tries):
        joined = EXTENSIONS.pick(rng)(rng, scope, tree, alias)
        if joined is not None and joined.rows <= limit:
            return joined
    return tree


def _joined(rng: random.Random, scope: Scope, tree: Joined, alias: str) -> Joined | None:
    new = item(rng, scope, alias)
    if tree.rows * new.rows > PAIRS:
        return None
    kind = KINDS.pick(rng)
    condition = first_made(rng, CONDITIONS, rng, scope, tree, new)
    if condition is None or (kind == "FULL" and not condition.hashable):
        return None
    flipped = chance(rng, 15)
    left, right = (new.rows, tree.rows) if flipped else (tree.rows, new.rows)
    rows = tree.rows * condition.fan + {"": 0, "LEFT": left, "RIGHT": right, "FULL": left + right}[kind]
    whole = f"({tree.sql})" if tree.kinds else tree.sql
    operands = (new.sql, whole) if flipped else (tree.sql, new.sql)
    words = f"{condition.prefix} {kind} JOIN".strip()
    missing = (condition.column,) if kind == "LEFT" and condition.column and not flipped else ()
    return Joined(
        f"{operands[0]} {words} {operands[1]} {condition.sql}".rstrip(),
        (*tree.relations, new),
        rows,
        (*tree.kinds, kind.lower() or "inner"),
        tree.missing + missing,
    )


def _lateral(rng: random.Random, scope: Scope, tree: Joined, alias: str) -> Joined | None:
    new = lateral(rng, scope.over(tree.relations, tree.rows), alias)
    if new is None:
        return None
    words = pick(rng, ("CROSS JOIN {}", "LEFT JOIN {} ON true", "CROSS JOIN {}"))
    return Joined(
        f"{tree.sql} {words.format(new.sql)}",
        (*tree.relations, new),
        tree.rows * new.rows,
        (*tree.kinds, "lateral"),
        tree.missing,
    )


def _cross(rng: random.Random, scope: Scope, tree: Joined, alias: str) -> Joined | None:
    new = item(rng, scope, alias)
    rows = tree.rows * new.rows
    return Joined(
        f"{tree.sql} CROSS JOIN {new.sql}", (*tree.relations, new), rows, (*tree.kinds, "cross"), tree.missing
    )


def _pair(rng: random.Random, tree: Joined, new: Relation) -> tuple[Column, Column] | None:
    """Return a column of the tree and a comparable column of the new relation.

    Columns of the same name are preferred, and so are partition keys. Return None if there is no pair.
    """
    relation = pick(rng, tree.relations)
    candidates = new.keys if new.keys and chance(rng, 45) else new.columns
    column = pick(rng, candidates)
    if column.wide:
        return None
    family = [other for other in relation.columns + relation.keys if other.family == column.family and not other.wide]
    same = [other for other in family if _shape(other, relation) == _shape(column, new)]
    others = same if same and chance(rng, 75) else family
    return (pick(rng, others), column) if others else None


def _equal(rng: random.Random, scope: Scope, tree: Joined, new: Relation) -> Condition | None:
    pair = _pair(rng, tree, new)
    return pair and Condition(f"ON {pair[0].sql} = {pair[1].sql}", pair[1].fan, column=pair[1].sql)


def _equals(rng: random.Random, scope: Scope, tree: Joined, new: Relation) -> Condition | None:
    pairs = {pair for _ in range(3) if (pair := _pair(rng, tree, new))}
    if len(pairs) < 2:
        return None
    chosen = sorted(pairs, key=lambda pair: (pair[0].sql, pair[1].sql))
    sql = " AND ".join(f"{left.sql} = {right.sql}" for left, right in chosen)
    return Condition(f"ON {sql}", min(right.fan for _, right in chosen), column=chosen[0][1].sql)


def _keys(rng: random.Random, scope: Scope, tree: Joined, new: Relation) -> Condition | None:
    """Return an equality of all partition keys, which partitionwise joins require."""
    shapes = [_shape(key, new) for key in new.keys]
    for relation in shuffled(rng, tree.relations):
        if shapes and [_shape(key, relation) for key in relation.keys] == shapes:
            pairs = zip(relation.keys, new.keys, strict=True)
            sql = " AND ".join(f"{left.sql} = {right.sql}" for left, right in pairs)
            return Condition(f"ON {sql}", min(key.fan for key in new.keys), column=new.keys[0].sql)
    return None


def _shape(column: Column, relation: Relation) -> str:
    return column.sql.replace(f"{relation.alias}.", "@")


def _using(rng: random.Random, scope: Scope, tree: Joined, new: Relation) -> Condition | None:
    names = [column.name for relation in tree.relations for column in relation.columns]
    common = [column for column in new.columns if names.count(column.name) == 1 and not column.wide]
    chosen = some(rng, common, 2 if chance(rng, 25) else 1)
    if not chosen:
        return None
    sql = f"USING ({', '.join(column.name for column in chosen)})"
    return Condition(sql, min(column.fan for column in chosen), column=chosen[0].sql)


def _natural(rng: random.Random, scope: Scope, tree: Joined, new: Relation) -> Condition | None:
    if len(tree.relations) > 1:
        return None
    common = [column for column in new.columns if tree.relations[0].named(column.name)]
    return Condition("", min(column.fan for column in common), prefix="NATURAL") if common else None


def _computed(rng: random.Random, scope: Scope, tree: Joined, new: Relation) -> Condition | None:
    """Return an equality of a column and an expression over the tree."""
    columns = [column for column in new.columns if column.family == "int"]
    others = scope.over(tree.relations, 1).of_family("int")
    if not columns or not others:
        return None
    column, other = pick(rng, columns), pick(rng, others)
    expression = pick(rng, ("{} + 1", "{} % 11", "{} * 0.5", "coalesce({}, 3)", "abs({})")).format(other.sql)
    return Condition(f"ON {expression} = {column.sql}", column.fan, column=column.sql)


def _restricted(rng: random.Random, scope: Scope, tree: Joined, new: Relation) -> Condition | None:
    """Return an equality and an additional condition on one or both sides."""
    equality = _equal(rng, scope, tree, new)
    if equality is None:
        return None
    relations = pick(rng, ((new,), tree.relations, (*tree.relations, new)))
    extra = predicate(rng, scope.over(relations, 1))
    return Condition(f"{equality.sql} AND {extra}", equality.fan, column=equality.column)


def _unequal(rng: random.Random, scope: Scope, tree: Joined, new: Relation) -> Condition | None:
    pair = _pair(rng, tree, new)
    if pair is None:
        return None
    return Condition(f"ON {pair[0].sql} {pick(rng, ('<', '>=', '<>'))} {pair[1].sql}", new.rows, hashable=False)


def _not_distinct(rng: random.Random, scope: Scope, tree: Joined, new: Relation) -> Condition | None:
    pair = _pair(rng, tree, new)
    if pair is None:
        return None
    fan = new.rows if pair[1].nullable else pair[1].fan
    return Condition(f"ON {pair[0].sql} IS NOT DISTINCT FROM {pair[1].sql}", fan, hashable=False)


def _either(rng: random.Random, scope: Scope, tree: Joined, new: Relation) -> Condition | None:
    left, right = _pair(rng, tree, new), _pair(rng, tree, new)
    if left is None or right is None:
        return None
    sql = f"ON ({left[0].sql} = {left[1].sql} OR {right[0].sql} = {right[1].sql})"
    return Condition(sql, left[1].fan + right[1].fan, hashable=False)


_Extension = Callable[[random.Random, Scope, Joined, str], Joined | None]
_Maker = Callable[[random.Random, Scope, Joined, Relation], Condition | None]
KINDS = Weighted((34, ""), (28, "LEFT"), (14, "RIGHT"), (14, "FULL"))
EXTENSIONS: Weighted[_Extension] = Weighted((90, _joined), (8, _lateral), (2, _cross))
CONDITIONS: Weighted[_Maker] = Weighted(
    (40, _equal), (18, _keys), (12, _equals), (12, _using), (3, _natural), (8, _computed), (12, _restricted),
    (2, _unequal), (2, _not_distinct), (2, _either),
)  # fmt: skip
