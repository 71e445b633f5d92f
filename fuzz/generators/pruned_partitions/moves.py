"""Changes that move rows to other partitions, and bring them there in an order that the executor's caches notice.

The executor keeps the partition of the last changed row. So MERGE and UPDATE move rows to the partition of the row that
is changed next. Their source is in order, and the planner is led to hash the tree, so that the order remains.
"""

import random

from fuzz.generators.choices import between, chance, pick, some
from fuzz.generators.pruned_partitions.conditions import Drawing, conditions, listed
from fuzz.generators.pruned_partitions.levels import Level
from fuzz.generators.pruned_partitions.scene import ROWS, Tree


def other_keys(drawing: Drawing, tree: Tree) -> str:
    """Return the assignments of the keys of another row, which fits. Some rows may keep their keys."""
    rng, number = drawing.rng, between(drawing.rng, 1, 9)
    wanted = pick(rng, (f"a.id + {number}", f"a.id - a.id % {number}", str(number)))
    keys = ", ".join(column.name for column in drawing.scene.columns)
    return f"({keys}) = (SELECT {keys} FROM {ROWS} AS r WHERE {tree.rows} ORDER BY r.id < {wanted}, r.id LIMIT 1)"


def merge_rows(drawing: Drawing, tree: Tree) -> str:
    """Return a MERGE with other rows of the plain table that fit: it moves, adds and removes rows."""
    rng = drawing.rng
    keys = ", ".join(_names(drawing))
    rows = f"{tree.rows} AND id % {between(rng, 1, 4)} = 0"
    source = f"(SELECT id + {between(rng, 1, 9)} AS id, {keys} FROM {ROWS} WHERE {rows}) AS s"
    matched = _actions(rng, "MATCHED", [_moved(drawing), *_UNMOVED], between(rng, 0, 2))
    on = f"a.id = s.id{extra(drawing, tree, 40)}"
    pruned = chance(rng, 45)  # rows are inserted into partitions that are pruned
    if pruned:
        on += f" AND {listed(drawing, pick(rng, tree.level.keys), 'a')}"
    unmatched = _unmatched(drawing, tree, between(rng, 0, 2))  # these need all partitions
    return _merged(drawing, tree.name, f"{source} ON {on}", [*matched, *([] if pruned else unmatched)])


def merge_following(drawing: Drawing, tree: Tree) -> str:
    """Return a MERGE that moves rows to the partition of the row that matches next, or inserts a row there."""
    rng, target = drawing.rng, _target(drawing, tree)
    actions = [_moved(drawing), *some(rng, _UNMOVED, between(rng, 0, 1))]
    clauses = _actions(rng, "MATCHED", actions, len(actions))
    if chance(rng, 20):  # joins that keep unmatched rows of the tree rarely keep the source's order
        clauses += _actions(rng, "NOT MATCHED BY SOURCE", ["DELETE", "DO NOTHING"], 1)
    source, on = _following(drawing, tree, target)
    return _merged(drawing, target.name, f"{source} ON {on}", clauses)


_UNMOVED = ("UPDATE SET v = a.v + 1", "DELETE", "DO NOTHING")


def update_following(drawing: Drawing, tree: Tree) -> str:
    """Return an UPDATE that moves rows to the partition of the row that is updated next."""
    target = _target(drawing, tree)
    source, where = _following(drawing, tree, target)
    changed = f"UPDATE {target.name} AS a SET {_assignment(drawing)} FROM {source}"
    return f"{changed} WHERE {where} RETURNING a.id, a.v, a.tableoid::regclass::text"


def _target(drawing: Drawing, tree: Tree) -> Level:
    """Return the whole tree, or a level with few leaves, among which the executor finds those of rows without a hash.

    Source: MT_NRELS_HASH in nodeModifyTable.c.
    """
    levels = (level for each in drawing.scene.trees for level in each.level.levels)
    small = [level for level in levels if len(list(level.leaves)) < _HASHED]
    return pick(drawing.rng, small) if small and chance(drawing.rng, 65) else tree.level


_HASHED = 4  # leaves, with assertions


def _following(drawing: Drawing, tree: Tree, target: Level) -> tuple[str, str]:
    """Return the target's own rows in a total order, each with the keys of the next one, and the condition of a join.

    Some rows are new. Rows with the id of another one are left out. CASE lets the planner expect half of the rows, and
    a remainder few of the target's.
    """
    rng, names = drawing.rng, _names(drawing)
    keys = ", ".join(f"last_value({name}) OVER w AS {name}" for name in names)
    of_bounds = [key.column.name for key in target.keys]
    order = ", ".join(dict.fromkeys((*pick(rng, ((), (), of_bounds, of_bounds, names[:1])), "id")))
    new = f"CASE WHEN id % {between(rng, 2, 5)} <> 0 THEN id ELSE id + {drawing.scene.rows} END AS id"
    few = f" AND {listed(drawing, pick(rng, target.keys), 'a')}" if chance(rng, 20) else ""
    counted = f"(SELECT *, count(*) OVER (PARTITION BY id) AS same FROM {target.name}) AS a"
    window = f"WINDOW w AS (ORDER BY {order} ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)"
    where = f"CASE WHEN same = 1 THEN true END{few}"
    source = f"(SELECT {new if chance(rng, 30) else 'id'}, {keys} FROM {counted} WHERE {where} {window}) AS s"
    hashed = f" AND a.id % {pick(rng, (1, 1, 2))} = 0" if chance(rng, 70) else ""
    return source, f"a.id = s.id{few}{hashed}{extra(drawing, tree, 15)}"


def _names(drawing: Drawing) -> list[str]:
    return [column.name for column in drawing.scene.columns]


def _assignment(drawing: Drawing) -> str:
    """Return the assignment of the keys of the source `s`."""
    names = _names(drawing)
    return f"({', '.join(names)}) = ROW({', '.join(f's.{name}' for name in names)})"


def _moved(drawing: Drawing) -> str:
    return f"UPDATE SET {_assignment(drawing)}"


def _unmatched(drawing: Drawing, tree: Tree, count: int) -> list[str]:
    """Return clauses of a MERGE for rows of the tree that the source lacks."""
    actions = [f"UPDATE SET {other_keys(drawing, tree)}", "DELETE", "DO NOTHING"]
    return _actions(drawing.rng, "NOT MATCHED BY SOURCE", actions, count)


def _merged(drawing: Drawing, target: str, source: str, clauses: list[str]) -> str:
    """Return a MERGE of a source with ids and keys that fit."""
    rng, names = drawing.rng, _names(drawing)
    if not clauses or chance(rng, 50):
        values = ", ".join(f"s.{name}" for name in ("id", *names))
        clauses = [*clauses, f"WHEN NOT MATCHED BY TARGET THEN INSERT (id, {', '.join(names)}) VALUES ({values})"]
    returned = "RETURNING merge_action(), a.id, a.v, a.tableoid::regclass::text"
    return f"MERGE INTO {target} AS a USING {source} {' '.join(clauses)} {returned}"


def extra(drawing: Drawing, tree: Tree, percent: int) -> str:
    """Return a further condition on the tree in this percentage of cases."""
    return f" AND {conditions(drawing, tree, 'a')}" if chance(drawing.rng, percent) else ""


def _actions(rng: random.Random, matched: str, actions: list[str], count: int) -> list[str]:
    """Return clauses of a MERGE for rows of the tree, the first of them mostly with a condition."""
    conditions = [f" AND a.v < {between(rng, 2, 9)}" if count == 2 or chance(rng, 50) else "", ""]
    drawn = zip(conditions, some(rng, actions, count), strict=False)
    return [f"WHEN {matched}{condition} THEN {action}" for condition, action in drawn]
