"""Generator `many_partitions`: joins of tables with up to 1024 children over equivalence classes with many members.

DDL on children, done and undone, invalidates cached plans. Queries sort and group by members of a class, use window
functions over them, and lock rows. Changes are rolled back.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from fuzz.generators.choices import Stream, Weighted, another, begin, between, chance, pick, shuffled
from fuzz.generators.generator import Generator, Scale
from fuzz.generators.many_partitions.changes import changed, moved_below_key
from fuzz.generators.many_partitions.scene import INDEXED, Parent, Scene, children, draw_scene
from fuzz.generators.many_partitions.trees import Tree, draw_tree
from fuzz.generators.sql.queries import Select, ended
from fuzz.generators.sql.scope import Column
from oracles.model.case import Case, Kind, Step

Top = Callable[[random.Random, Tree], Select]


def _keys(rng: random.Random, tree: Tree, most: int) -> list[str]:
    """Return up to `most` different keys of the tree's relations."""
    columns = [column.sql for relation in tree.relations for column in relation.columns[:2]]
    return list(shuffled(rng, columns)[: between(rng, 1, most)])


def _numbers(tree: Tree) -> list[Column]:
    return [column for relation in tree.relations for column in relation.columns if column.name in ("i2", "i3")]


def _totals(rng: random.Random, tree: Tree) -> list[str]:
    """Return aggregates that depend on each row, and on a key of each row."""
    sums = [f"sum({pick(rng, _numbers(tree)).sql})" for _ in range(between(rng, 1, 3))]
    key = pick(rng, tree.relations).columns[0].sql
    return ["count(*)", *sums, pick(rng, (f"count({key})", f"count(DISTINCT {key})", f"max({key}::text)"))]


def totalled(rng: random.Random, tree: Tree) -> Select:
    """Return a query with one row of aggregates."""
    return Select(tuple(_totals(rng, tree)), tree.where(), 1, (*tree.kinds, "total"))


def _rows(rng: random.Random, tree: Tree) -> Select:
    head = "SELECT DISTINCT" if chance(rng, 25) else "SELECT"
    outputs = [*_keys(rng, tree, 4), *(column.sql for column in _numbers(tree)[:2])]
    # A sum over two relations is a class with one member. It has child members if the two are joined child by child.
    if chance(rng, 30):
        first, last = _numbers(tree)[0], _numbers(tree)[-1]
        outputs.insert(0, f"{first.sql} + {last.sql}")
    return Select(tuple(outputs), tree.where(), tree.rows, (*tree.kinds, "rows"), head)


def _grouped(rng: random.Random, tree: Tree) -> Select:
    keys = _keys(rng, tree, 3)
    outputs = (*keys, *_totals(rng, tree))
    having = f" HAVING count(*) < {between(rng, 2, 9)}" if chance(rng, 15) else ""
    return Select(outputs, f"{tree.where()} GROUP BY {', '.join(keys)}{having}", tree.rows, (*tree.kinds, "grouped"))


def _windowed(rng: random.Random, tree: Tree) -> Select:
    """Return a query with a window function that does not depend on the order of peers."""
    keys = _keys(rng, tree, 3)
    function = pick(rng, ("rank()", "count(*)", f"sum({pick(rng, _numbers(tree)).sql})"))
    window = f"PARTITION BY {pick(rng, keys)} ORDER BY {', '.join(shuffled(rng, keys))}"
    return Select((*keys, f"{function} OVER ({window})"), tree.where(), tree.rows, (*tree.kinds, "window"))


def _locked(rng: random.Random, tree: Tree) -> Select:
    """Return a query with FOR UPDATE or a weaker lock; without one if no table of the tree is lockable."""
    select = _rows(rng, tree)
    if not tree.lockable or select.head != "SELECT":
        return select
    strength = pick(rng, ("UPDATE", "SHARE", "NO KEY UPDATE", "KEY SHARE"))
    locked = select.within("SELECT * FROM (", f" FOR {strength} OF {pick(rng, tree.lockable)}) AS l")
    return replace(locked, tags=(*tree.kinds, "locked"))


TOPS: Weighted[Top] = Weighted((30, totalled), (34, _rows), (18, _grouped), (10, _windowed), (8, _locked))


_MOST_DETACHED = 24  # upper bound of the children of a table whose partitions are detached


def change(rng: random.Random, parent: Parent) -> tuple[str, str]:
    """Return DDL on the table or one of its children, and the statement that reverts it."""
    form, name = parent.form, parent.name
    if form.method == "INHERITS" and not form.nested:
        child = f"{name}_{between(rng, 1, form.children)}"
        return f"ALTER TABLE {child} NO INHERIT {name}", f"ALTER TABLE {child} INHERIT {name}"
    if form.method in ("RANGE", "LIST", "HASH") and form.children <= _MOST_DETACHED:
        child, bound = pick(rng, children(parent))
        return f"ALTER TABLE {name} DETACH PARTITION {child}", f"ALTER TABLE {name} ATTACH PARTITION {child} {bound}"
    return (
        f"CREATE INDEX passing ON {'ONLY ' if parent.foreign else ''}{name} ({INDEXED.pick(rng)})",
        "DROP INDEX passing",
    )


_RELATIONS = Weighted((26, 2), (26, 3), (16, 4), (10, 5), (5, 1), (6, 6), (4, 7), (4, 8), (1, 10), (2, 12))


class ManyPartitions(Generator):
    """Joins of tables with few or many children, including self-joins and joins of equal partitionings."""

    name: ClassVar[str] = "many_partitions"
    cpu_seconds: ClassVar[float] = 6.5
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "partitionwise",
        "merge_only",
        "merge_only+partitionwise",
        "merge_only+indexes",
        "loop_only+indexes",
        "loop_only+indexes+partitionwise",
        "hash_only+partitionwise",
        "no_loops+indexes",
        "genetic",
        "genetic+partitionwise",
        "hash_only+parallel+partitionwise",
        "no_pruning",
        "extended",
        "prepared_generic",
        "prepared_custom",
        "cursor",
        "closed_early",
    )
    scene_weight: ClassVar[int] = 1

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: a scene of three to five tables, then queries, and prepared statements executed around DDL."""
        scene = draw_scene(rng, scale)
        most = scale.relations + scale.relations // 2
        begin(rng, Stream.ACTION)
        actions = [_query_action(rng, scene, most)]
        while another(rng, len(actions), scale.actions(3)):
            actions.append(ACTIONS.pick(rng)(rng, scene, most))
        return Case(self.name, scene.steps, tuple(step for steps in actions for step in steps))


def _query_action(rng: random.Random, scene: Scene, most: int) -> tuple[Step, ...]:
    given = chance(rng, 15)
    parameter = f"$1::{scene.key.types[0].name}" if given else ""
    tree = draw_tree(rng, scene, min(most, _RELATIONS.pick(rng)), parameter)
    select = TOPS.pick(rng)(rng, tree)
    sql, ordered = ended(rng, select)
    params = (scene.key.types[0].text(_value(rng, scene)),) if given else ()
    return (Step(sql, Kind.QUERY, params=params, ordered=ordered, tags=tuple(sorted(set(select.tags)))),)


def _prepared_action(rng: random.Random, scene: Scene, most: int) -> tuple[Step, ...]:
    """Return executions of one prepared statement before, between and after DDL and its reversal."""
    type_ = scene.key.types[0]
    tree = draw_tree(rng, scene, min(most, 3), pick(rng, (f"$1::{type_.name}", "")))
    needed = f" ({type_.name})" if any("$1" in condition for condition in tree.conditions) else ""
    given = f" ({type_.literal(_value(rng, scene))})" if needed else ""
    execute = Step(f"EXECUTE kept{given}")
    changed, undone = (Step(sql) for sql in change(rng, pick(rng, scene.parents)))
    generic = (Step("SET plan_cache_mode = force_generic_plan"),) if chance(rng, 60) else ()
    return (
        *generic, Step(f"PREPARE kept{needed} AS {totalled(rng, tree).sql}", tags=("kept",)), execute, changed, execute,
        execute, undone, execute, Step("DEALLOCATE kept"), *(Step("RESET plan_cache_mode") for _ in generic),
    )  # fmt: skip


def _by_ctid(rng: random.Random, scene: Scene, most: int) -> tuple[Step, ...]:
    """Return a join over the places of rows, a class of system columns. No statement moves the rows."""
    name = scene.plain.name
    place = pick(rng, ("x.ctid = '(0,1)'", 'x.ctid = ANY (\'{"(0,1)","(0,3)","(9,9)"}\')', "x.i3 < 3"))
    joined = f"{name} AS x JOIN {name} AS y ON y.ctid = x.ctid JOIN {name} AS z ON z.ctid = y.ctid AND z.i2 = x.i2"
    sql = (
        f"SELECT count(*), sum(x.i3), sum(y.i2), sum(z.i3) FROM {joined} WHERE {place} AND z.i2 < {between(rng, 1, 5)}"
    )
    return (Step(sql, Kind.QUERY, tags=("by_ctid",)),)


def _along_key(rng: random.Random, scene: Scene, most: int) -> tuple[Step, ...]:
    """Return a join of a plain table along its foreign key, if it has one."""
    name, type_ = scene.plain.name, scene.plain.types[0]
    first = pick(rng, ("a.k1", "a.k1", scene.key.volatile(type_).format("a.k1")))
    where = pick(rng, ("", f" WHERE b.k1 = {type_.literal(_value(rng, scene))}", " WHERE a.i2 = b.i3 % 5"))
    sql = f"SELECT {first} AS s, a.i3, b.i2 FROM {name} AS a JOIN {name} AS b ON a.k1 = b.k1{where} ORDER BY 1, 2"
    return (Step(sql, Kind.QUERY, ordered=True, tags=("along_key",)),)


def _volatile_order(rng: random.Random, scene: Scene, most: int) -> tuple[Step, ...]:
    """Return a query in the order of a subquery that is sorted by a volatile expression, sometimes with a join."""
    parent = pick(rng, scene.parents)
    key = scene.key.volatile(parent.types[0]).format("a.k1")
    limit = f" LIMIT {between(rng, 1, 30)}" if chance(rng, 40) else ""
    sorted_ = f"(SELECT {key} AS s, a.i3 FROM {parent.name} AS a ORDER BY 1, 2{limit}) AS q"
    other = f" JOIN {scene.plain.name} AS b ON b.k1 = q.s" if chance(rng, 50) else ""
    sql = f"SELECT q.s, q.i3 FROM {sorted_}{other} ORDER BY q.s, q.i3"
    return (Step(sql, Kind.QUERY, ordered=True, tags=("volatile_order",)),)


_GROUPED = "SELECT a.i2, a.k1, count(*) FROM {first} AS a GROUP BY a.i2, a.k1 ORDER BY a.k1, a.i2"
_OTHER_ORDERS = (
    "SELECT generate_series(1, a.i2) AS g, a.i3 FROM {first} AS a ORDER BY g, a.i3",
    "SELECT count(*), sum(a.i3), sum(b.i3) FROM {first} AS a FULL JOIN {second} AS b ON b.k1 = a.k1"
    " WHERE coalesce(a.i2, b.i2, 7) = 3",
    "SELECT a.k1, rank() OVER (ORDER BY a.i2) FROM {first} AS a UNION SELECT a.k1, a.i3 FROM {first} AS a"
    " WHERE a.i2 < 2",
    _GROUPED,
)


def _other_order(rng: random.Random, scene: Scene, most: int) -> tuple[Step, ...]:
    """Return a query for whose order, groups or constant the planner has a rule of its own."""
    first, second = pick(rng, scene.parents).name, pick(rng, scene.parents).name
    form = pick(rng, _OTHER_ORDERS)
    query = Step(form.format(first=first, second=second), Kind.QUERY, tags=("other_order",))
    if form != _GROUPED:
        return (query,)
    return (Step("SET enable_group_by_reordering = off"), query, Step("RESET enable_group_by_reordering"))


def _value(rng: random.Random, scene: Scene) -> int:
    form = pick(rng, scene.parents).form
    return between(rng, 0, form.rows) * form.step


ACTIONS: Weighted[Callable[[random.Random, Scene, int], tuple[Step, ...]]] = Weighted(
    (67, _query_action),
    (10, _prepared_action),
    (8, changed),
    (5, moved_below_key),
    (4, _other_order),
    (2, _by_ctid),
    (2, _along_key),
    (2, _volatile_order),
)
