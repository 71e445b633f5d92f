"""FROM lists joined over few equivalence classes, and conditions that form, merge or prevent such classes."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from fuzz.generators.choices import Weighted, between, chance, pick, shuffled
from fuzz.generators.many_partitions.scene import VOLATILE, Key, Parent, Scene
from fuzz.generators.sql.joins import Joined
from fuzz.generators.sql.predicates import where
from fuzz.generators.sql.scope import Column, Relation

_ROWS = 3_000  # upper bound of the rows of a FROM list
_PAIRS = 400_000  # upper bound of the pairs of rows that a nested loop compares
# Upper bounds of the children of all relations together, by number of relations. A planner that searches members
# linearly takes time quadratic in them, multiplied by the number of join orders.
_MEMBERS = {1: 2100, 2: 2100, 3: 900, 4: 500, 5: 260, 6: 160, 7: 110}
_MEMBERS_OF_MORE = 100
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Tree(Joined):
    """A FROM list, and its WHERE conditions. Outer levels reference `relations` only."""

    conditions: tuple[str, ...] = ()
    lockable: tuple[str, ...] = ()  # aliases of tables that no outer join extends with NULLs

    def where(self) -> str:
        """Return the FROM clause, and the WHERE clause if there are conditions."""
        return f" FROM {self.sql}{where(list(self.conditions))}"


@dataclass
class _Drawing:
    """The remaining budget of members while a tree is drawn."""

    rng: random.Random
    scene: Scene
    members: int
    aliases: int = 0

    def alias(self) -> str:
        self.aliases += 1
        return f"a{self.aliases}"

    def parent(self) -> Parent:
        """Return a table whose members fit into the remaining budget.

        If there is none, return the table with fewest members.
        """
        fitting = [parent for parent in self.scene.parents if parent.members <= self.members]
        chosen = pick(self.rng, fitting) if fitting else min(self.scene.parents, key=lambda parent: parent.members)
        self.members -= chosen.members
        return chosen


def draw_tree(rng: random.Random, scene: Scene, count: int, parameter: str = "") -> Tree:
    """Return a tree of up to `count` relations. `parameter` is SQL of a value that a key may be compared with."""
    drawing = _Drawing(rng, scene, _MEMBERS.get(count, _MEMBERS_OF_MORE))
    first, locked = _item(drawing)
    tree = Tree(first.sql, (first,), first.rows, lockable=locked)
    for _ in range(1, count):
        tree = _extended(drawing, tree)
    return replace(tree, conditions=tree.conditions + _conditions(rng, scene.key, tree, parameter))


def _extended(drawing: _Drawing, tree: Tree) -> Tree:
    for _ in range(_TRIES):
        extended = EXTENSIONS.pick(drawing.rng)(drawing, tree)
        if extended is not None and extended.rows <= _ROWS:
            return extended
    return tree


def _item(drawing: _Drawing) -> tuple[Relation, tuple[str, ...]]:
    """Return a FROM item, and its alias if rows of it can be locked."""
    return ITEMS.pick(drawing.rng)(drawing, drawing.alias())


def _table(drawing: _Drawing, alias: str) -> tuple[Relation, tuple[str, ...]]:
    return drawing.parent().source.relation(alias), (alias,)


def _pulled_up(drawing: _Drawing, alias: str) -> tuple[Relation, tuple[str, ...]]:
    """Return a subquery that the planner pulls up."""
    relation = drawing.parent().source.relation(alias)
    inside = drawing.parent().source.relation(f"{alias}i") if chance(drawing.rng, 25) else None
    shown = ", ".join(f"{alias}.{column.name}" for column in relation.columns)
    if inside is None:
        body = f"SELECT {shown} FROM {relation.sql} WHERE {alias}.i2 < {between(drawing.rng, 1, 5)}"
    else:
        body = f"SELECT {shown} FROM {relation.sql} JOIN {inside.sql} ON {alias}.k1 = {alias}i.k1"
    return replace(relation, sql=f"({body}) AS {alias}", stored=False), ()


def _united(drawing: _Drawing, alias: str) -> tuple[Relation, tuple[str, ...]]:
    """Return UNION ALL of tables. The planner makes an append relation of it, whose children may have children."""
    rng = drawing.rng
    sides = [drawing.parent().source.relation(alias) for _ in range(between(rng, 2, 3))]
    last = pick(rng, ("k1", "k1", "k2"))
    bodies = [f"SELECT {alias}.k1, {alias}.k2, {alias}.i2, {alias}.i3 FROM {side.sql}" for side in sides[:-1]]
    bodies.append(f"SELECT {alias}.{last}, {alias}.k2, {alias}.i2, {alias}.i3 FROM {sides[-1].sql}")
    columns = tuple(replace(column, fan=column.fan * 2 * len(sides), nullable=True) for column in sides[0].columns)
    rows = sum(side.rows for side in sides)
    return Relation(f"({' UNION ALL '.join(bodies)}) AS {alias}", alias, columns, rows), ()


ITEMS: Weighted[Callable[[_Drawing, str], tuple[Relation, tuple[str, ...]]]] = Weighted(
    (78, _table), (12, _pulled_up), (10, _united)
)


def _named(relation: Relation, name: str) -> Column:
    column = relation.named(name)
    assert column is not None
    return column


def _equal(rng: random.Random, key: Key, tree: Tree, new: Relation) -> tuple[str, int]:
    """Return an equality of a key in the tree and a key of the new relation, and its fan.

    The fan is the maximum number of rows of the new relation that match one row.
    """
    ours = _named(pick(rng, tree.relations), _KEYS.pick(rng))
    theirs = _named(new, _KEYS.pick(rng))
    form = key.form(rng)
    left, right = form.format(ours.sql), form.format(theirs.sql)
    fan = theirs.fan * (new.rows // 7 + 1 if "%" in form else 1)
    if key.collation and chance(rng, 40):
        right = f"{right} COLLATE {key.collation}"
    if chance(rng, 6):
        right = key.volatile(theirs.type).format(theirs.sql)
        left = ours.sql
    return (f"{left} = {right}" if chance(rng, 60) else f"{right} = {left}"), fan


_KEYS = Weighted((75, "k1"), (25, "k2"))


def _joined(drawing: _Drawing, tree: Tree) -> Tree | None:
    rng = drawing.rng
    new, locked = _item(drawing)
    if tree.rows * new.rows > _PAIRS:
        return None
    kind = KINDS.pick(rng)
    condition, fan = _equal(rng, drawing.scene.key, tree, new)
    if kind == "FULL" and VOLATILE in condition:  # it supports neither merge nor hash join
        return None
    if kind != "FULL" and chance(rng, 18):
        condition += f" AND {_equal(rng, drawing.scene.key, tree, new)[0]}"
    if kind in ("LEFT", "RIGHT") and chance(rng, 15):
        condition += f" AND {pick(rng, (tree.relations[-1], new)).alias}.i2 < {between(rng, 1, 4)}"
    rows = tree.rows * fan + {"": 0, "LEFT": tree.rows, "RIGHT": new.rows, "FULL": tree.rows + new.rows}[kind]
    lockable = {"": tree.lockable + locked, "LEFT": tree.lockable, "RIGHT": locked, "FULL": ()}[kind]
    sql = f"{tree.sql} {f'{kind} JOIN'.strip()} {new.sql} ON {condition}"
    kinds = (*tree.kinds, kind.lower() or "inner")
    return Tree(sql, (*tree.relations, new), rows, kinds, conditions=tree.conditions, lockable=lockable)


KINDS = Weighted((64, ""), (24, "LEFT"), (6, "RIGHT"), (6, "FULL"))


def _crossed(drawing: _Drawing, tree: Tree) -> Tree | None:
    """Return the tree with a CROSS JOIN whose condition is in WHERE, where it follows those of other joins."""
    new, locked = _item(drawing)
    if tree.rows * new.rows > _PAIRS or not {"inner", "semi"}.issuperset(tree.kinds):
        return None
    condition, fan = _equal(drawing.rng, drawing.scene.key, tree, new)
    return Tree(
        f"{tree.sql} CROSS JOIN {new.sql}", (*tree.relations, new), tree.rows * fan, (*tree.kinds, "inner"),
        conditions=(*tree.conditions, condition), lockable=tree.lockable + locked,
    )  # fmt: skip


def _unused(drawing: _Drawing, tree: Tree) -> Tree | None:
    """Return the tree with left joins to unique keys whose columns are unused, so that the planner removes them."""
    unique = [parent for parent in drawing.scene.parents if parent.primary and parent.members <= drawing.members]
    if not unique:
        return None
    rng, alias = drawing.rng, drawing.alias()
    spare = pick(rng, unique).source.relation(alias)
    key = _named(pick(rng, tree.relations), "k1").sql
    if chance(rng, 50):
        sql = f"{tree.sql} LEFT JOIN {spare.sql} ON {key} = {alias}.k1"
        return replace(tree, sql=sql, kinds=(*tree.kinds, "removed"))
    new, _ = _table(drawing, drawing.alias())
    inner = f"({new.sql} LEFT JOIN {spare.sql} ON {new.alias}.k1 = {alias}.k1)"
    seen = (new,) if chance(rng, 60) else ()
    sql = f"{tree.sql} LEFT JOIN {inner} ON {key} = {new.alias}.k1"
    kinds = (*tree.kinds, "removed", "left")
    return replace(tree, sql=sql, relations=(*tree.relations, *seen), rows=tree.rows * 2, kinds=kinds)


def _semi(drawing: _Drawing, tree: Tree) -> Tree:
    """Return the tree with a semi or anti join condition."""
    rng, alias = drawing.rng, drawing.alias()
    inside = drawing.parent().source.relation(alias)
    ours = _named(pick(rng, tree.relations), "k1").sql
    condition, kind = pick(
        rng,
        (
            (f"{ours} IN (SELECT {alias}.k1 FROM {inside.sql})", "semi"),
            (f"EXISTS (SELECT FROM {inside.sql} WHERE {alias}.k1 = {ours} AND {alias}.i2 > 0)", "semi"),
            (f"NOT EXISTS (SELECT FROM {inside.sql} WHERE {ours} = {alias}.k2)", "anti"),
        ),
    )
    return replace(tree, conditions=(*tree.conditions, condition), kinds=(*tree.kinds, kind))


def _lateral(drawing: _Drawing, tree: Tree) -> Tree:
    """Return the tree with a LATERAL subquery, which is pulled up or executed per row."""
    rng, alias = drawing.rng, drawing.alias()
    relation = drawing.parent().source.relation(alias)
    ours = _named(pick(rng, tree.relations), "k1").sql
    shown = ", ".join(f"{alias}.{column.name}" for column in relation.columns)
    body = f"SELECT {shown} FROM {relation.sql} WHERE {alias}.k1 = {ours}"
    if chance(rng, 40) and tree.rows * relation.rows <= _PAIRS // 10:
        body += f" ORDER BY {alias}.k1, {alias}.k2, {alias}.i3 LIMIT 2"
    words = pick(rng, ("CROSS JOIN LATERAL ({}) AS {}", "LEFT JOIN LATERAL ({}) AS {} ON true"))
    return replace(
        tree,
        sql=f"{tree.sql} {words.format(body, alias)}",
        relations=(*tree.relations, replace(relation, stored=False)),
        rows=tree.rows * 2,
        kinds=(*tree.kinds, "lateral"),
    )


EXTENSIONS: Weighted[Callable[[_Drawing, Tree], Tree | None]] = Weighted(
    (66, _joined), (12, _crossed), (9, _unused), (8, _semi), (5, _lateral)
)


def _conditions(rng: random.Random, key: Key, tree: Tree, parameter: str) -> tuple[str, ...]:
    """Return conditions that merge classes, add constants to them, or belong to no class.

    They are shuffled, because the order of conditions matters to equivalence classes.
    """
    drawn: list[str] = []
    a, b, c = (_named(pick(rng, tree.relations), _KEYS.pick(rng)) for _ in range(3))
    if chance(rng, 24) and a.sql != b.sql:
        drawn.append(f"{a.sql} = {b.sql}")
    if parameter or chance(rng, 24):
        drawn.append(f"{c.sql} = {parameter or c.type.literal(rng.randrange(c.domain))}")
    if chance(rng, 8) and a.sql != c.sql:
        drawn.append(f"{a.sql} = {c.sql}")
    if chance(rng, 15):
        drawn.append(f"{a.sql} {pick(rng, ('>=', '<'))} {a.type.literal(rng.randrange(a.domain))}")
    if chance(rng, 5):
        drawn.append(f"{b.sql} IS NULL")
    return shuffled(rng, drawn)
