"""Join trees over all partition keys, in any shape: each side of a join may be a join whose bounds were merged."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fuzz.generators.choices import Weighted, between, chance, pick
from fuzz.generators.merged_bounds.scene import Scene, Table
from fuzz.generators.sql.items import derived, listed, ordered
from fuzz.generators.sql.joins import PAIRS, Joined
from fuzz.generators.sql.predicates import predicate, where
from fuzz.generators.sql.scope import Column, Relation, Scope
from fuzz.generators.sql.sqltypes import INT4

Keys = tuple[str, ...]  # expressions, one for each key of the case

_MOST_ROWS = 8_000
_ROWS = Weighted((70, 2_000), (30, _MOST_ROWS))  # upper bounds of the rows of a tree
_RESCANNED = 20_000  # upper bound of the rows that a rescanned subquery reads


@dataclass(frozen=True, slots=True)
class Tree:
    """A FROM list.

    `sides` are the expressions that a join of all keys may use. At most `fan` rows have equal keys. `conditions` belong
    into WHERE.
    """

    joined: Joined
    fan: int
    sides: tuple[Keys, ...]
    conditions: tuple[str, ...] = ()
    names: Keys = ()  # of the keys after USING

    @property
    def rows(self) -> int:
        """Return an upper bound of the rows."""
        return self.joined.rows


@dataclass(frozen=True, slots=True)
class Allowed:
    """The constructs of a query. Together, some of them crash PostgreSQL (corpus/README.md).

    A join over a full join whose lists were merged again reads past an array (a948b29d4b2a). Joins of three relations
    with pruned partitions may pair default partitions in two ways (14484eee70d8).
    """

    full: bool = True  # full joins
    keys: bool = True  # conditions that prune partitions
    more: bool = True  # semi and anti joins, besides the joins of the tree


def draw_allowed(rng: random.Random, scene: Scene, count: int) -> Allowed:
    """Return the constructs of a query over `count` relations."""
    if count <= 2 and (scene.remaps or scene.defaults) and chance(rng, 75):
        return Allowed(more=False)
    return Allowed(full=not scene.remaps, keys=not scene.defaults)


@dataclass(frozen=True, slots=True)
class Drawing:
    """The random number generator, the scene, the scope of a tree, and the tables in the order of their use.

    With `kinds`, each tree is the chain of these joins of the tables.
    """

    rng: random.Random
    scene: Scene
    scope: Scope
    order: tuple[Table, ...]
    allowed: Allowed
    kinds: tuple[str, ...] = ()

    def predicate(self, relations: tuple[Relation, ...], scope: Scope) -> str:
        """Return a condition over the relations, without keys where they are not allowed."""
        if not self.allowed.keys:
            relations = tuple(replace(each, columns=_others(self.scene, each), keys=()) for each in relations)
        return predicate(self.rng, scope.over(relations, 1))

    def table(self) -> Table:
        """Return a random table."""
        return pick(self.rng, self.order)

    def next(self, number: int) -> Table:
        """Return the table for a relation of this number, mostly another one than for other numbers."""
        return self.order[number % len(self.order)] if chance(self.rng, 88) else self.table()


def _others(scene: Scene, relation: Relation) -> tuple[Column, ...]:
    """Return the columns that are no keys."""
    keys = {key.name for key in scene.keys}
    return tuple(column for column in relation.columns if column.name not in keys)


def draw_tree(drawing: Drawing, count: int) -> Tree:
    """Return a tree of up to `count` relations."""
    rng = drawing.rng
    if drawing.kinds:
        return _chain(drawing, drawing.order, drawing.kinds, _MOST_ROWS)
    limit = _ROWS.pick(rng)
    kinds = _KINDS.pick(rng) if drawing.allowed.full else _NOT_FULL
    if drawing.scene.plain and count > 1 and chance(rng, 20):
        return _any_chain(drawing, count, limit, kinds)
    if count > 1 and chance(rng, 12):
        return _listed(drawing, count, limit)
    return _tree(drawing, 0, count, limit, kinds)


def _leaf(drawing: Drawing, number: int) -> Tree:
    table = drawing.next(number)
    items = _ITEMS if drawing.allowed.more else _SINGLE_ITEMS
    return items.pick(drawing.rng)(drawing, table, drawing.scope.alias(number))


def _of(drawing: Drawing, relation: Relation, fan: int) -> Tree:
    keys = _keys(drawing, relation.alias)
    return Tree(Joined(relation.sql, (relation,), relation.rows), fan, (keys,))


def _keys(drawing: Drawing, alias: str) -> Keys:
    return tuple(key.sql.replace("@", f"{alias}.") for key in drawing.scene.keys)


def _table(drawing: Drawing, table: Table, alias: str) -> Tree:
    return _of(drawing, table.source.relation(alias), table.fan)


def _subquery(drawing: Drawing, table: Table, alias: str, conditions: list[str], fan: int) -> Tree:
    """Return a subquery without aggregates, which the planner pulls up."""
    inside = table.source.relation(_inner(drawing, 0))
    body = f"SELECT {listed(inside.columns)} FROM {inside.sql}{where(conditions)}"
    relation = derived(alias, body, inside.columns, inside.rows)
    keys = tuple(replace(key, sql=key.sql.replace(f"{inside.alias}.", f"{alias}.")) for key in inside.keys)
    return _of(drawing, replace(relation, keys=keys), fan)


def _inner(drawing: Drawing, number: int) -> str:
    return drawing.scope.inner().alias(number)


def _filtered(drawing: Drawing, table: Table, alias: str) -> Tree:
    if chance(drawing.rng, 15):
        return _subquery(drawing, table, alias, ["false"], 1)
    inside = table.source.relation(_inner(drawing, 0))
    condition = drawing.predicate((inside,), drawing.scope.inner())
    return _subquery(drawing, table, alias, [condition], table.fan)


def _semi(drawing: Drawing, table: Table, alias: str) -> Tree:
    """Return a table with a semi or anti join, which the planner may execute before or after other joins."""
    return _subquery(drawing, table, alias, [matched(drawing, _keys(drawing, _inner(drawing, 0)), 1)], table.fan)


def matched(drawing: Drawing, outer: Keys, number: int) -> str:
    """Return the condition that a table has, or lacks, a row with the keys `outer`."""
    rng = drawing.rng
    inside = drawing.table().source.relation(_inner(drawing, number))
    keys = _keys(drawing, inside.alias)
    extra = []
    if drawing.allowed.keys and chance(rng, 60):
        extra.append(_at_bound(rng, inside))
    elif chance(rng, 30):
        extra.append(drawing.predicate((inside,), drawing.scope.inner()))
    exists = f"EXISTS (SELECT FROM {inside.sql}{where([*_equalities(outer, keys), *extra])})"
    if chance(rng, 25):
        # Below grouping sets, a nested loop may lose expressions after IN (corpus/README.md, 654f2797f80a).
        if not drawing.scene.plain:
            return exists
        whole = f"({', '.join(outer)}) IN (SELECT {', '.join(keys)} FROM {inside.sql}{where(extra)})"
        return whole if len(outer) > 1 else whole.replace(f"({outer[0]}) IN", f"{outer[0]} IN", 1)
    return pick(rng, ("NOT ", "NOT ", "")) + exists


def _at_bound(rng: random.Random, relation: Relation) -> str:
    """Return a comparison of a key with a value at a bound or near it, which proves some partitions empty.

    At the first and the last bound, it may do so for all partitions of a partition, but not of others.
    """
    key = pick(rng, relation.keys)
    hints = key.hints or (1,)
    value = max(0, pick(rng, (pick(rng, hints), hints[0], hints[-1])) + pick(rng, (0, 1, -1)))
    return f"{key.sql} {pick(rng, ('=', '<', '>=', '>', '<='))} {key.type.literal(value)}"


def _equalities(left: Keys, right: Keys) -> list[str]:
    return [f"{ours} = {theirs}" for ours, theirs in zip(left, right, strict=True)]


def _united(drawing: Drawing, table: Table, alias: str) -> Tree:
    other = drawing.table()
    sides = [side.source.relation(_inner(drawing, n)) for n, side in enumerate((table, other))]
    body = " UNION ALL ".join(f"SELECT {listed(side.columns)} FROM {side.sql}" for side in sides)
    columns = [replace(column, fan=column.fan + sides[1].rows) for column in sides[0].columns]
    return _of(drawing, derived(alias, body, columns, sum(side.rows for side in sides)), table.fan + other.fan)


def _grouped(drawing: Drawing, table: Table, alias: str) -> Tree:
    inside = table.source.relation(_inner(drawing, 0))
    keys = inside.columns[: len(drawing.scene.keys)]
    columns = (
        *keys,
        Column("max(i1)", "i1", INT4, 1, inside.rows),
        Column("count(*)::int4", "i2", INT4, inside.rows, 9),
    )
    body = f"SELECT {listed(columns)} FROM {inside.sql} GROUP BY {', '.join(key.sql for key in keys)}"
    return _of(drawing, derived(alias, body, columns, inside.rows), 1)


_SINGLE: tuple[tuple[int, Callable[[Drawing, Table, str], Tree]], ...] = (
    (74, _table), (10, _filtered), (3, _united), (3, _grouped),
)  # fmt: skip
_SINGLE_ITEMS = Weighted(*_SINGLE)
_ITEMS = Weighted(*_SINGLE, (18, _semi))


def _tree(drawing: Drawing, first: int, count: int, limit: int, kinds: Weighted[str]) -> Tree:
    """Return a tree of `count` relations, whose aliases have the numbers from `first`."""
    if count == 1:
        return _leaf(drawing, first)
    rng = drawing.rng
    split = _SPLITS.pick(rng)
    inner = count - 1 if split == "left" else 1 if split == "right" else between(rng, 1, count - 1)
    left = _tree(drawing, first, inner, limit, kinds)
    if inner == count - 1 and chance(rng, 8):
        return _lateral(drawing, left, first + inner, limit)
    right = _tree(drawing, first + inner, count - inner, limit, kinds)
    return _joined(drawing, left, right, kinds.pick(rng), limit)


_SPLITS = Weighted((62, "left"), (18, "right"), (20, "bushy"))
_MIXED = Weighted((34, ""), (30, "LEFT"), (14, "RIGHT"), (22, "FULL"))
_NOT_FULL = Weighted((44, ""), (38, "LEFT"), (18, "RIGHT"))
# Trees of one kind keep their partitions through all joins.
_KINDS = Weighted((60, _MIXED), (15, Weighted((1, ""))), (10, Weighted((1, "LEFT"))), (15, Weighted((1, "FULL"))))


def _joined(drawing: Drawing, left: Tree, right: Tree, kind: str, limit: int) -> Tree:
    """Return the join of two trees, or the left one if the join might be too large."""
    rng = drawing.rng
    ours, theirs = _side(rng, left), _side(rng, right)
    conditions = _equalities(ours, theirs)
    fan, rows = left.fan * right.fan, min(left.rows * right.fan, right.rows * left.fan)
    if len(conditions) > 1 and chance(rng, 6):
        conditions.pop(rng.randrange(len(conditions)))
        rows = left.rows * right.rows
    if chance(rng, 5) and len(left.sides) > 1:  # a second equality, of the same class or not
        conditions += _equalities(pick(rng, left.sides), theirs)[:1]
    rows += _unmatched(kind, left, right)
    if rows > limit or left.rows * right.rows > PAIRS:
        return left
    relations = left.joined.relations + right.joined.relations
    if chance(rng, 20):
        conditions.append(drawing.predicate(pick(rng, (right.joined.relations, relations)), drawing.scope))
    sql = f"{_operand(left)} {f'{kind} JOIN'.strip()} {_operand(right)} ON {' AND '.join(conditions)}"
    sides = left.sides + right.sides
    if kind == "FULL":
        sides = (tuple(f"COALESCE({a}, {b})" for a, b in zip(ours, theirs, strict=True)), *sides)
    missing = (theirs[0],) if kind == "LEFT" else ()
    return Tree(
        Joined(
            sql, relations, rows, (*left.joined.kinds, *right.joined.kinds, kind.lower() or "inner"),
            left.joined.missing + right.joined.missing + missing,
        ),
        fan, sides, left.conditions + right.conditions,
    )  # fmt: skip


def _side(rng: random.Random, tree: Tree) -> Keys:
    """Return keys of a tree. Those of a full join itself, COALESCE, have no NULLs where one side has no partner."""
    full = tree.joined.kinds[-1:] == ("full",)
    return tree.sides[0] if full and chance(rng, 40) else pick(rng, tree.sides)


def _unmatched(kind: str, left: Tree, right: Tree) -> int:
    return {"": 0, "LEFT": left.rows, "RIGHT": right.rows, "FULL": left.rows + right.rows}[kind]


def _operand(tree: Tree) -> str:
    return f"({tree.joined.sql})" if tree.joined.kinds else tree.joined.sql


def _any_chain(drawing: Drawing, count: int, limit: int, kinds: Weighted[str]) -> Tree:
    """Return a chain over `count` tables. If it is longer than one join, this is a full join more often."""
    tables = [drawing.next(n) for n in range(count)]
    drawn = [kinds.pick(drawing.rng) for _ in range(count - 1)]
    if count > 2 and drawing.allowed.full and chance(drawing.rng, 40):
        drawn[0] = "FULL"
    return _chain(drawing, tables, drawn, limit)


def _chain(drawing: Drawing, tables: Sequence[Table], kinds: Sequence[str], limit: int) -> Tree:
    """Return joins with USING over all keys. After a full join, a key is the COALESCE of both sides."""
    tree, *others = (_table(drawing, table, drawing.scope.alias(n)) for n, table in enumerate(tables))
    names = tuple(key.name for key in drawing.scene.keys)
    for right, kind in zip(others, kinds, strict=True):
        rows = min(tree.rows * right.fan, right.rows * tree.fan) + _unmatched(kind, tree, right)
        if rows > limit:
            break
        sql = f"{tree.joined.sql} {f'{kind} JOIN'.strip()} {right.joined.sql} USING ({', '.join(names)})"
        relations, done = tree.joined.relations + right.joined.relations, (*tree.joined.kinds, kind.lower() or "inner")
        tree = Tree(Joined(sql, relations, rows, done), tree.fan * right.fan, tree.sides + right.sides)
    return replace(tree, sides=(names, *tree.sides), names=names) if tree.joined.kinds else tree


def _listed(drawing: Drawing, count: int, limit: int) -> Tree:
    """Return a FROM list whose equalities are in WHERE, where they form equivalence classes."""
    rng = drawing.rng
    tree = _leaf(drawing, 0)
    for number in range(1, count):
        right = _leaf(drawing, number)
        rows = tree.rows * right.fan
        if rows > limit:
            break
        sql = f"{tree.joined.sql}, {right.joined.sql}"
        kinds = (*tree.joined.kinds, "inner")
        joined = Joined(sql, tree.joined.relations + right.joined.relations, rows, kinds)
        conditions = (*tree.conditions, *_equalities(pick(rng, tree.sides), right.sides[0]))
        tree = Tree(joined, tree.fan * right.fan, tree.sides + right.sides, conditions)
    return tree


def _lateral(drawing: Drawing, left: Tree, number: int, limit: int) -> Tree:
    """Return the tree with a LATERAL item over a table."""
    return _LATERALS.pick(drawing.rng)(drawing, left, drawing.scope.alias(number), limit)


def _lateral_expression(drawing: Drawing, left: Tree, alias: str, limit: int) -> Tree:
    """Return a left join to a subquery with an expression over both sides, which becomes a PlaceHolderVar."""
    rng, table = drawing.rng, drawing.table()
    inside = table.source.relation(_inner(drawing, 0))
    outer = pick(rng, left.joined.relations)
    both = Column(f"{pick(rng, ('least', 'greatest', 'coalesce'))}({outer.alias}.i1, {inside.alias}.i1)", "i3", INT4)
    columns = (*inside.columns, both)
    relation = derived(alias, f"SELECT {listed(columns)} FROM {inside.sql}", columns, inside.rows, prefix="LATERAL ")
    return _beside(drawing, left, relation, table, pick(rng, ("LEFT", "")), limit)


def _lateral_sample(drawing: Drawing, left: Tree, alias: str, limit: int) -> Tree:
    """Return a join to a sample of all rows. Its argument refers to the tree, so it is executed for each row."""
    table = drawing.table()
    relation = table.source.relation(alias)
    outer = pick(drawing.rng, left.joined.relations)
    method = pick(drawing.rng, ("SYSTEM", "BERNOULLI"))
    sample = f"{relation.sql} TABLESAMPLE {method} (100) REPEATABLE (coalesce({outer.alias}.i2, 0))"
    inside = derived(alias, f"SELECT * FROM {sample}", relation.columns, relation.rows, prefix="LATERAL ")
    if left.rows * relation.rows > _RESCANNED:
        return left
    return _beside(drawing, left, inside, table, pick(drawing.rng, ("", "LEFT")), limit)


def _beside(drawing: Drawing, left: Tree, new: Relation, table: Table, kind: str, limit: int) -> Tree:
    return _joined(drawing, left, _of(drawing, new, table.fan), kind, limit)


def _lateral_rows(drawing: Drawing, left: Tree, alias: str, limit: int) -> Tree:
    """Return a join to the first rows with equal keys."""
    rng, table = drawing.rng, drawing.table()
    inside = table.source.relation(_inner(drawing, 0))
    if left.rows * inside.rows > _RESCANNED:
        return left
    conditions = _equalities(_keys(drawing, inside.alias), pick(rng, left.sides))
    body = f"SELECT {listed(inside.columns)} FROM {inside.sql}{where(conditions)}"
    relation = derived(
        alias, f"{body} {ordered(inside.columns)} LIMIT 1", inside.columns, 1, read=inside.rows, prefix="LATERAL "
    )
    words = pick(rng, ("LEFT JOIN", "JOIN"))
    sql = f"{_operand(left)} {words} {relation.sql} ON true"
    joined = replace(
        left.joined, sql=sql, relations=(*left.joined.relations, relation), kinds=(*left.joined.kinds, "lateral")
    )
    return replace(left, joined=joined)


_LATERALS: Weighted[Callable[[Drawing, Tree, str, int], Tree]] = Weighted(
    (50, _lateral_expression), (20, _lateral_sample), (30, _lateral_rows)
)
