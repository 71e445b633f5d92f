"""Generator `merged_bounds`: partition-wise joins of relations with different bounds, and changes that move rows."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import permutations
from typing import ClassVar

from fuzz.generators.choices import Stream, Weighted, another, begin, between, chance, pick, shuffled, some
from fuzz.generators.generator import Generator, Scale
from fuzz.generators.merged_bounds.scene import Scene, Table, draw_scene, steps_of
from fuzz.generators.merged_bounds.trees import Allowed, Drawing, Tree, draw_allowed, draw_tree, matched
from fuzz.generators.sql.predicates import where
from fuzz.generators.sql.queries import LEVEL_TOPS, Level, Select, aggregate, parameterized
from fuzz.generators.sql.scope import Scope
from fuzz.generators.sql.subqueries import subquery
from oracles.model.case import Case, Step


def move(rng: random.Random, scene: Scene) -> Step:
    """Return a step that changes rows of the first table."""
    return Step(_CHANGES.pick(rng)(rng, scene.tables[0], pick(rng, scene.tables[1:])))


def _moved(rng: random.Random, table: Table) -> str:
    """Return the assignments that give a row the keys of another row.

    The new keys depend on the row alone, because it may have several partners.
    """
    if not table.points:
        return "i2 = t.i2 + 1"
    by = between(rng, 1, 9)
    return ", ".join(f"{key.name} = {table.value(n, f't.i1 + {by}')}" for n, key in enumerate(table.keys))


def _equal(ours: Table, other: Table) -> str:
    pairs = zip(ours.keys, other.keys, strict=True)
    return " AND ".join(f"{a.sql.replace('@', 't.')} = {b.sql.replace('@', 's.')}" for a, b in pairs)


def _some(rng: random.Random) -> str:
    return f"t.i1 % {pick(rng, (3, 5, 2))} = {rng.randrange(2)}"


def _update(rng: random.Random, table: Table, other: Table) -> str:
    return (
        f"UPDATE {table.name} AS t SET {_moved(rng, table)} FROM {other.name} AS s "
        f"WHERE {_equal(table, other)} AND {_some(rng)}"
    )


def _update_matched(rng: random.Random, table: Table, other: Table) -> str:
    negation = pick(rng, ("", "NOT "))
    return (
        f"UPDATE {table.name} AS t SET {_moved(rng, table)} "
        f"WHERE {negation}EXISTS (SELECT FROM {other.name} AS s WHERE {_equal(table, other)}) AND {_some(rng)}"
    )


def _delete(rng: random.Random, table: Table, other: Table) -> str:
    condition = f"{_equal(table, other)} AND t.i2 = {rng.randrange(5)}"
    return f"DELETE FROM {table.name} AS t USING {other.name} AS s WHERE {condition}"


def _merge(rng: random.Random, table: Table, other: Table) -> str:
    """Return a MERGE with at most one partner of each row."""
    keys = ", ".join(key.name for key in other.keys)
    source = other.name if other.fan == 1 else f"(SELECT DISTINCT {keys} FROM {other.name})"
    by_source = "WHEN NOT MATCHED BY SOURCE AND t.i2 = 3 THEN UPDATE SET i2 = t.i2 + 1"
    clauses = [
        f"WHEN MATCHED AND {_some(rng)} THEN UPDATE SET {_moved(rng, table)}",
        "WHEN MATCHED AND t.i2 = 4 THEN DELETE",
        *([by_source] if chance(rng, 50) else []),
    ]
    return f"MERGE INTO {table.name} AS t USING {source} AS s ON {_equal(table, other)} {' '.join(clauses)}"


_CHANGES: Weighted[Callable[[random.Random, Table, Table], str]] = Weighted(
    (40, _update), (25, _update_matched), (15, _delete), (20, _merge)
)


_RELATIONS = Weighted((30, 2), (38, 3), (20, 4), (12, 5))


class MergedBounds(Generator):
    """Joins of two to five partitioned tables whose bounds differ, mostly such that they can be merged."""

    name: ClassVar[str] = "merged_bounds"
    cpu_seconds: ClassVar[float] = 0.8
    modes: ClassVar[tuple[str, ...]] = (
        "partitionwise",
        "hash_only+partitionwise",
        "merge_only+partitionwise",
        "loop_only+partitionwise",
        "loop_only+indexes+partitionwise",
        "merge_only+indexes+partitionwise",
        "hash_only+small_memory+partitionwise",
        "hash_only+parallel+partitionwise",  # without nested loops, which might restart the workers for each row
        "genetic+partitionwise",
        "no_pruning+partitionwise",
        "hash_only+no_pruning+partitionwise",
        "plain",
        "extended",
        "prepared_generic",
        "prepared_custom",
        "cursor",
        "closed_early",
    )
    scene_weight: ClassVar[int] = 1
    query_weight: ClassVar[int] = 4

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: two to five tables, then queries, and changes that move rows of the first table."""
        scene = draw_scene(rng, scale)
        steps = tuple(step for table in scene.tables for step in steps_of(rng, table))
        if chance(rng, 30):  # without pruning, partitions may then be proven empty in another way
            steps = (Step("SET constraint_exclusion = on"), *steps)
        limit = max(1, scale.queries * 2 // 3)
        begin(rng, Stream.ACTION)
        actions = [_query(rng, scene, scale)]
        if scene.joins_in_any_order:
            for _ in range((_MATCHING_ROUNDS if scene.matching else _ROUNDS).pick(rng)):
                begin(rng, Stream.ACTION)
                actions += _in_each_order(rng, scene)
            actions = actions[:limit]
        while another(rng, len(actions), limit):
            changed = scene.tables[0].changed and chance(rng, 10)
            actions.append(move(rng, scene) if changed else _query(rng, scene, scale))
        return Case(self.name, steps, tuple(actions))


def _query(rng: random.Random, scene: Scene, scale: Scale) -> Step:
    count = 2 if scene.remaps and chance(rng, 40) else min(scale.relations, _RELATIONS.pick(rng))
    return parameterized(rng, scene.sources, lambda scope: ("", _select(rng, scene, scope, count)))


def _in_each_order(rng: random.Random, scene: Scene) -> Iterator[Step]:
    """Yield joins of three tables in each order."""
    for order in permutations(some(rng, scene.tables, 3)):
        yield _chain(rng, scene, order, (_FIRST_KINDS.pick(rng), _SECOND_KINDS.pick(rng)))


def _chain(rng: random.Random, scene: Scene, order: tuple[Table, ...], kinds: tuple[str, ...]) -> Step:
    allowed, top = draw_allowed(rng, scene, len(order)), _TOPS.pick(rng)
    return parameterized(
        rng,
        scene.sources,
        lambda scope: ("", top(Drawing(rng, scene, scope, order, allowed, kinds), len(order))),
    )


_ROUNDS = Weighted((90, 0), (10, 1))
_MATCHING_ROUNDS = Weighted((10, 0), (20, 1), (40, 2), (30, 3))
# Only a full join has rows of both tables outside of the other one's bounds.
_FIRST_KINDS = Weighted((15, ""), (10, "LEFT"), (5, "RIGHT"), (70, "FULL"))
_SECOND_KINDS = Weighted((50, ""), (20, "LEFT"), (10, "RIGHT"), (20, "FULL"))


def _select(rng: random.Random, scene: Scene, scope: Scope, count: int) -> Select:
    drawing = Drawing(rng, scene, scope, shuffled(rng, scene.tables), draw_allowed(rng, scene, count))
    return _united(drawing, count) if chance(rng, 8) else _TOPS.pick(rng)(drawing, count)


def _level(drawing: Drawing, count: int) -> tuple[Tree, Level]:
    rng = drawing.rng
    tree = draw_tree(drawing, count)
    scope = drawing.scope.over(tree.joined.relations, tree.rows)
    # Most conditions make an outer join an inner one.
    filters = 0 if drawing.kinds and chance(rng, 70) else _FILTERS.pick(rng)
    conditions = [*tree.conditions, *(drawing.predicate(scope.relations, scope) for _ in range(filters))]
    if tree.joined.missing and chance(rng, 20):
        conditions.append(f"{pick(rng, tree.joined.missing)} IS NULL")
    if drawing.allowed.more and chance(rng, 20):
        conditions.append(matched(drawing, pick(rng, tree.sides), 0))
    if drawing.allowed == Allowed() and chance(rng, 10):
        conditions.append(subquery(rng, scope))
    return tree, Level(scope, tree.joined, f" FROM {tree.joined.sql}{where(conditions)}")


_FILTERS = Weighted((50, 0), (38, 1), (12, 2))


def _any(drawing: Drawing, count: int) -> Select:
    return LEVEL_TOPS.pick(drawing.rng)(drawing.rng, _level(drawing, count)[1])


def _by_keys(drawing: Drawing, count: int) -> Select:
    """Return groups by all keys of one relation, or by some of them and other columns."""
    rng = drawing.rng
    tree, level = _level(drawing, count)
    keys = list(shuffled(rng, pick(rng, tree.sides)))
    if chance(rng, 20):
        keys[0] = f"{pick(rng, tree.joined.relations).alias}.i2"
    outputs = [aggregate(rng, level.scope) for _ in range(between(rng, 1, 3))]
    positions = ", ".join(str(n) for n, _ in enumerate(keys, 1))
    sets = _SETS.pick(rng).format(positions)
    having = f" HAVING count(*) {pick(rng, ('>', '<'))} {between(rng, 1, 3)}" if chance(rng, 20) else ""
    rest = f"{level.sql} GROUP BY {sets}{having}"
    # Before PostgreSQL 18, the planner considers a key that equals a constant sorted. Grouping sets may set it to NULL
    # (4cfb7a7b549e).
    tags = (*tree.joined.kinds, "grouped")
    return Select((*keys, *outputs), rest, tree.rows, tags, sortable=sets == positions)


_SETS = Weighted((86, "{}"), (5, "ROLLUP ({})"), (3, "CUBE ({})"), (6, "GROUPING SETS (({}), ())"))


def _distinct(drawing: Drawing, count: int) -> Select:
    tree, level = _level(drawing, count)
    keys = pick(drawing.rng, tree.sides)
    return Select(keys, level.sql, tree.rows, (*tree.joined.kinds, "rows"), "SELECT DISTINCT")


def _rows(drawing: Drawing, count: int) -> Select:
    """Return rows with the number of the row in each relation, and its whole row or the name of its partition."""
    rng = drawing.rng
    tree, level = _level(drawing, count)
    outputs = [f"{relation.alias}.i1" for relation in tree.joined.relations]
    if chance(rng, 40):
        outputs.append(pick(rng, tree.joined.relations).alias + "::text")
    stored = [relation.alias for relation in tree.joined.relations if relation.stored]
    if stored and chance(rng, 12):
        outputs.append(f"{pick(rng, stored)}.tableoid::regclass::text")
    return Select((*outputs, *tree.names), level.sql, tree.rows, (*tree.joined.kinds, "rows"))


_TOPS: Weighted[Callable[[Drawing, int], Select]] = Weighted((40, _any), (24, _by_keys), (6, _distinct), (30, _rows))


def _united(drawing: Drawing, count: int) -> Select:
    """Return the union of the rows of two join trees, below one Append."""
    first, second = (_rows_of(drawing, min(count, 3)) for _ in range(2))
    rows = first.rows + second.rows
    return replace(
        first.within("", f" UNION ALL {second.sql}"), rows=rows, tags=(*first.tags, *second.tags, "set"), sortable=False
    )


def _rows_of(drawing: Drawing, count: int) -> Select:
    tree, level = _level(drawing, count)
    ends = (tree.joined.relations[0], tree.joined.relations[-1])
    outputs = tuple(f"{relation.alias}.i{n}" for relation in ends for n in (1, 2))
    return Select(outputs, level.sql, tree.rows, (*tree.joined.kinds, "rows"))
