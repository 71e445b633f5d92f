"""Changes of rows by conditions on keys, rows at bounds, and scrolled cursors."""

import random
from collections.abc import Callable

from fuzz.generators.choices import Weighted, between, chance, pick
from fuzz.generators.pruned_partitions.conditions import Drawing, conditions
from fuzz.generators.pruned_partitions.keys import Key
from fuzz.generators.pruned_partitions.levels import Level
from fuzz.generators.pruned_partitions.queries import rows, total, tree_of
from fuzz.generators.pruned_partitions.scene import DRIVER, ROWS, Scene, Tree
from oracles.model.case import Step

Action = Callable[[random.Random, Scene], tuple[Step, ...]]


def _step(sql: str, tag: str, *, ordered: bool = False, may_fail: bool = False) -> Step:
    return Step(sql, ordered=ordered, may_fail=may_fail, tags=(tag,))


def changed(rng: random.Random, scene: Scene) -> tuple[Step, ...]:
    """Return one change, rolled back in most cases."""
    drawing = Drawing(rng, scene)
    tree = tree_of(drawing)
    name, change = _CHANGES.pick(rng)
    step = _step(change(drawing, tree), name)
    return (step,) if chance(rng, 20) else (Step("BEGIN"), step, Step("ROLLBACK"))


def _update(drawing: Drawing, tree: Tree) -> str:
    where = conditions(drawing, tree, "a")
    return f"UPDATE {tree.name} AS a SET v = a.v + 1 WHERE {where} RETURNING a.id, a.v, a.tableoid::regclass::text"


def _rekeyed(drawing: Drawing, tree: Tree) -> str:
    """Return an UPDATE that moves rows to other partitions, where all rows fit one."""
    if tree.level.accepts:
        return _update(drawing, tree)
    keys = _assigned(drawing.rng, pick(drawing.rng, tree.keys))
    where = conditions(drawing, tree, "a")
    return f"UPDATE {tree.name} AS a SET {keys} WHERE {where} RETURNING a.id, a.tableoid::regclass::text"


def _assigned(rng: random.Random, key: Key) -> str:
    """Return the assignment of a value near the bounds to the key's column."""
    kind = key.column.kind
    return f"{key.column.name} = {kind.type.literal(min(key.near(rng), kind.largest(key.column.domain)))}"


def _delete(drawing: Drawing, tree: Tree) -> str:
    return f"DELETE FROM {tree.name} AS a WHERE {conditions(drawing, tree, 'a')} RETURNING a.id, a.v"


def _unique(drawing: Drawing, tree: Tree) -> tuple[str, str]:
    """Return rows of the small table with different keys, and the condition that they match a row of the tree."""
    key = pick(drawing.rng, tree.keys)
    grouped = f"(SELECT {key.of('d.')} AS k, count(*) AS n FROM {DRIVER} AS d GROUP BY 1) AS s"
    extra = f" AND {conditions(drawing, tree, 'a')}" if chance(drawing.rng, 50) else ""
    return grouped, f"{key.of('a.')} = s.k{extra}"


def _update_from(drawing: Drawing, tree: Tree) -> str:
    source, on = _unique(drawing, tree)
    return f"UPDATE {tree.name} AS a SET v = a.v + s.n FROM {source} WHERE {on} RETURNING a.id, a.v"


def _delete_using(drawing: Drawing, tree: Tree) -> str:
    source, on = _unique(drawing, tree)
    return f"DELETE FROM {tree.name} AS a USING {source} WHERE {on} RETURNING a.id, s.n"


def _merge(drawing: Drawing, tree: Tree) -> str:
    source, on = _unique(drawing, tree)
    matched = f"WHEN MATCHED AND a.v < {between(drawing.rng, 2, 9)} THEN UPDATE SET v = a.v + s.n"
    rest = pick(drawing.rng, ("WHEN MATCHED THEN DELETE", "WHEN MATCHED THEN DO NOTHING"))
    return f"MERGE INTO {tree.name} AS a USING {source} ON {on} {matched} {rest}"


def _routed(drawing: Drawing, tree: Tree) -> str:
    """Return an INSERT of rows that fit, in an order that repeats or changes the partition."""
    names = drawing.scene.names
    order = pick(drawing.rng, ("id", f"{drawing.scene.columns[0].name}, id"))
    rest = f"FROM {ROWS} WHERE {tree.rows} ORDER BY {order} LIMIT {between(drawing.rng, 5, 60)}"
    return f"INSERT INTO {tree.name} ({names}) SELECT {names} {rest} RETURNING id, tableoid::regclass::text"


_CHANGES = Weighted(
    (20, ("update", _update)), (15, ("rekeyed", _rekeyed)), (15, ("delete", _delete)),
    (12, ("update_from", _update_from)), (10, ("delete_using", _delete_using)), (13, ("merge", _merge)),
    (15, ("routed", _routed)),
)  # fmt: skip


def moved(rng: random.Random, scene: Scene) -> tuple[Step, ...]:
    """Return changes of single rows that may fit no partition."""
    tree = pick(rng, scene.trees)
    leaf = pick(rng, list(tree.level.leaves)).name
    key, row = pick(rng, tree.keys), between(rng, 1, scene.rows)
    update = f"UPDATE {tree.name} SET {_assigned(rng, key)} WHERE id = {row}"
    source = f"({scene.names}) SELECT {scene.names} FROM {ROWS} WHERE id = {row}"
    returned = "RETURNING id, tableoid::regclass::text"
    return (
        _step(f"{update} {returned}", "moved", may_fail=True),
        _step(f"INSERT INTO {leaf} {source} {returned}", "constraint", may_fail=True),
        _step(f"INSERT INTO {tree.name} {source} {returned}", "fits", may_fail=True),
    )


def scrolled(rng: random.Random, scene: Scene) -> tuple[Step, ...]:
    """Return a cursor that moves back and forth. Without a total order, each step reads all rows or none."""
    drawing = Drawing(rng, scene)
    select = rows(drawing)
    ordered = chance(rng, 65)
    sql = total(rng, select, scene) if ordered else select.sql
    moves = [_MOVES.pick(rng).format(between(rng, 1, 12)) for _ in range(between(rng, 3, 7))]
    if not ordered:
        moves = ["FORWARD ALL", "BACKWARD ALL", "FORWARD ALL"][: between(rng, 2, 3)]
    return (
        Step("BEGIN"),
        _step(f"DECLARE scrolled SCROLL CURSOR FOR {sql}", "scrolled"),
        *(_step(f"FETCH {move} FROM scrolled", "fetched", ordered=ordered) for move in moves),
        Step("CLOSE scrolled"),
        Step("COMMIT"),
    )


_MOVES = Weighted(
    (25, "FORWARD {}"), (25, "BACKWARD {}"), (15, "ABSOLUTE {}"), (8, "ABSOLUTE -{}"), (8, "RELATIVE -{}"),
    (6, "LAST"), (5, "FIRST"), (4, "FORWARD ALL"), (4, "BACKWARD ALL"),
)  # fmt: skip


def refused(rng: random.Random, scene: Scene) -> tuple[Step, ...]:
    """Return a new partition that may overlap others, or exclude rows of its own or of the default partition."""
    level = pick(rng, list(pick(rng, scene.trees).level.levels))
    bound = pick(rng, [_random_bound(rng, level), _random_bound(rng, level), pick(rng, level.parts).piece.bound])
    create = f"CREATE TABLE added PARTITION OF {level.name} {bound}"
    steps = [_step(create, "added", may_fail=True)]
    if chance(rng, 50):
        rows = f"INSERT INTO added SELECT * FROM {ROWS} WHERE id % {between(rng, 2, 9)} = 0"
        attach = f"ALTER TABLE {level.name} ATTACH PARTITION added {bound}"
        steps = [Step(f"CREATE TABLE added (LIKE {ROWS})"), Step(rows), _step(attach, "attached", may_fail=True)]
    return (*steps, Step("DROP TABLE IF EXISTS added"))


def _random_bound(rng: random.Random, level: Level) -> str:
    if level.method == "HASH":
        modulus = between(rng, 1, 12)
        return f"FOR VALUES WITH (MODULUS {modulus}, REMAINDER {rng.randrange(modulus + 1)})"
    low, high = (", ".join(key.kind.type.literal(key.near(rng)) for key in level.keys) for _ in range(2))
    if level.method == "LIST":
        return f"FOR VALUES IN ({pick(rng, (low, f'{low}, {high}', 'NULL'))})"
    return f"FOR VALUES FROM ({low}) TO ({high})"


CHANGES: Weighted[Action] = Weighted((60, changed), (12, moved), (22, scrolled), (6, refused))
