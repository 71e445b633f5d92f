"""Changes of tables with children, of all children at once or of few. They are rolled back.

A value of k1 occurs once per table, so each row has at most one partner in the plain table, and changes once.
"""

import random
from collections.abc import Callable

from fuzz.generators.choices import Weighted, between, chance, pick
from fuzz.generators.many_partitions.scene import Parent, Scene, children
from fuzz.generators.sql.predicates import where
from oracles.model.case import Kind, Step

_SETS = ("i2 = x.i2 + 1", "i2 = x.i2 + 1, k2 = NULL", "i2 = x.i3 % 3")


def changed(rng: random.Random, scene: Scene, _most: int) -> tuple[Step, ...]:
    """Return a change of a table, and a query of its content."""
    parent = pick(rng, scene.parents[:2])  # those with the most children
    tag, make = (_FOREIGN_CHANGES if parent.foreign else _CHANGES).pick(rng)
    content = f"SELECT count(*), sum(i2), count(k2) FROM {parent.name}"
    change = Step(make(rng, scene, parent), tags=(tag,))
    return (Step("BEGIN"), change, Step(content, Kind.QUERY), Step("ROLLBACK"))


def _condition(rng: random.Random, scene: Scene) -> str:
    divisor = between(rng, 2, 5)
    return pick(
        rng,
        (
            f"x.i3 % {divisor} = {rng.randrange(divisor)}",
            f"x.i2 < {between(rng, 1, 4)}",
            "x.k2 IS NOT NULL",
            f"x.k1 IN (SELECT k1 FROM {scene.plain.name} WHERE i2 > 1)",
        ),
    )


def _conditions(rng: random.Random, scene: Scene) -> list[str]:
    return [_condition(rng, scene) for _ in range(between(rng, 0, 1))]


def _updated(rng: random.Random, scene: Scene, parent: Parent) -> str:
    conditions = where(_conditions(rng, scene))
    return f"UPDATE {parent.name} AS x SET {pick(rng, _SETS)}{conditions} RETURNING x.k1, x.i2"


def _updated_from(rng: random.Random, scene: Scene, parent: Parent) -> str:
    conditions = where(["y.k1 = x.k1", *_conditions(rng, scene)])
    returned = pick(rng, ("x.k1, y.i3", "x.tableoid::regclass, x.k1", "x.i2, x.i3"))
    return (
        f"UPDATE {parent.name} AS x SET i2 = x.i2 + y.i3 FROM {scene.plain.name} AS y{conditions} RETURNING {returned}"
    )


def _deleted(rng: random.Random, scene: Scene, parent: Parent) -> str:
    return f"DELETE FROM {parent.name} AS x{where(_conditions(rng, scene))} RETURNING x.k1, x.i3"


def _deleted_using(rng: random.Random, scene: Scene, parent: Parent) -> str:
    conditions = where(["y.k1 = x.k1", *_conditions(rng, scene)])
    return f"DELETE FROM {parent.name} AS x USING {scene.plain.name} AS y{conditions} RETURNING x.k1, y.i2"


def _merged(rng: random.Random, scene: Scene, parent: Parent) -> str:
    first, second = (pick(rng, ("UPDATE SET i2 = x.i2 + y.i3", "DELETE", "DO NOTHING")) for _ in range(2))
    clauses = [f"WHEN MATCHED AND {_condition(rng, scene)} THEN {first}", f"WHEN MATCHED THEN {second}"]
    if chance(rng, 35):
        clauses.append(f"WHEN NOT MATCHED BY SOURCE AND x.i3 % 2 = 0 THEN {pick(rng, ('UPDATE SET i2 = 0', 'DELETE'))}")
    source = f"(SELECT * FROM {scene.plain.name} WHERE i3 % {between(rng, 1, 3)} = 0) AS y"
    returned = " RETURNING merge_action(), x.k1, x.i2" if chance(rng, 60) else ""
    return f"MERGE INTO {parent.name} AS x USING {source} ON y.k1 = x.k1 {' '.join(clauses)}{returned}"


_Change = Callable[[random.Random, Scene, Parent], str]
# MERGE is refused if a child is foreign.
_FOREIGN_CHANGES: Weighted[tuple[str, _Change]] = Weighted(
    (30, ("updated", _updated)), (30, ("updated_from", _updated_from)),
    (20, ("deleted", _deleted)), (20, ("deleted_using", _deleted_using)),
)  # fmt: skip
_CHANGES: Weighted[tuple[str, _Change]] = Weighted(
    (20, ("updated", _updated)), (25, ("updated_from", _updated_from)), (15, ("deleted", _deleted)),
    (15, ("deleted_using", _deleted_using)), (25, ("merged", _merged)),
)  # fmt: skip


def moved_below_key(rng: random.Random, scene: Scene, most: int) -> tuple[Step, ...]:
    """Return an UPDATE that moves a row out of a partition that has partitions, and that a foreign key references.

    PostgreSQL refuses that (ExecCrossPartitionUpdateForeignKey). Other rows may move.
    """
    nested = [parent for parent in scene.parents if parent.primary and parent.form.nested]
    if not nested:
        return changed(rng, scene, most)
    parent = pick(rng, nested)
    form, type_ = parent.form, parent.types[0]
    row, to = (type_.literal(n * form.step) for n in (rng.randrange(2), form.rows + between(rng, 1, 9)))
    referenced, _ = children(parent)[0]
    return (
        Step("BEGIN"),
        Step(f"CREATE TABLE refers (k1 {type_.declaration} REFERENCES {referenced})"),
        Step(f"UPDATE {parent.name} AS x SET k1 = {to} WHERE x.k1 = {row}", may_fail=True, tags=("moved_below_key",)),
        Step("ROLLBACK"),
    )
