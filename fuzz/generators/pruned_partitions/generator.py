"""Generator `pruned_partitions`: conditions at the bounds of partition trees, pruned at each stage of a query.

Prepared statements are executed before, between and after changes of the partitions.
"""

import random
from collections.abc import Callable
from typing import ClassVar

from fuzz.generators.choices import Stream, Weighted, another, begin, between, chance, first_made, pick
from fuzz.generators.generator import Generator, Scale
from fuzz.generators.pruned_partitions.changes import CHANGES, Action, excluded_row
from fuzz.generators.pruned_partitions.conditions import Drawing, conditions
from fuzz.generators.pruned_partitions.levels import Level, Part
from fuzz.generators.pruned_partitions.queries import query
from fuzz.generators.pruned_partitions.scene import Scene, draw_scene
from oracles.model.case import Case, Step

Ddl = tuple[tuple[Step, ...], tuple[Step, ...]]  # DDL, and statements that revert it

_PARAMS = 3


def kept(rng: random.Random, scene: Scene) -> tuple[Step, ...]:
    """Return executions of one prepared statement around DDL on its table and the reversal."""
    drawing = Drawing(rng, scene, most=_PARAMS)
    tree = pick(rng, scene.trees)
    head = "SELECT count(*), sum(a.id), min(a.tableoid::regclass::text), max(a.tableoid::regclass::text)"
    sql = f"{head} FROM {tree.name} AS a WHERE {conditions(drawing, tree, 'a')}"
    given = [f"{_quoted(text)}::{type_}" for text, type_ in zip(drawing.params, drawing.types, strict=True)]
    types, values = (f" ({', '.join(each)})" if each else "" for each in (drawing.types, given))
    execute = Step(f"EXECUTE kept{values}", tags=("executed",))
    changed, undone = _ddl(rng, pick(rng, list(tree.level.levels)), scene)
    generic = chance(rng, 75)
    return (
        *([Step("SET plan_cache_mode = force_generic_plan")] if generic else []),
        Step(f"PREPARE kept{types} AS {sql}", tags=("kept",)),
        execute, execute, *changed, execute, *undone, execute,
        Step("DEALLOCATE kept"),
        *([Step("RESET plan_cache_mode")] if generic else []),
    )  # fmt: skip


def _quoted(text: str | None) -> str:
    return "NULL" if text is None else f"'{text}'"


def _ddl(rng: random.Random, level: Level, scene: Scene) -> Ddl:
    return first_made(rng, _CHANGES, rng, level, scene) or _detached(rng, level, scene)


def _detach(level: Level, part: Part, how: str = "") -> Step:
    return Step(f"ALTER TABLE {level.name} DETACH PARTITION {part.name}{how}", tags=(f"detach{how.lower()}",))


def _attach(level: Level, part: Part) -> Step:
    return Step(f"ALTER TABLE {level.name} ATTACH PARTITION {part.name} {part.piece.bound}", tags=("attach",))


def _detached(rng: random.Random, level: Level, scene: Scene) -> Ddl:
    part = pick(rng, level.parts)
    concurrent = chance(rng, 50) and not any(part.is_default for part in level.parts)
    how = " CONCURRENTLY" if concurrent else ""
    return (_detach(level, part, how),), (_attach(level, part),)


def _pending(rng: random.Random, level: Level, scene: Scene) -> Ddl | None:
    """Return a detachment that is pending, as after an interrupted DETACH CONCURRENTLY, until it is finished.

    Only relation caches that are built again notice the change of the catalog.
    """
    if any(part.is_default for part in level.parts):
        return None
    part = pick(rng, level.parts)
    marked = Step(f"UPDATE pg_inherits SET inhdetachpending = true WHERE inhrelid = '{part.name}'::regclass")
    noticed = Step(f"ALTER TABLE {level.name} ALTER COLUMN id SET STATISTICS {between(rng, 1, 99)}", tags=("pending",))
    return (marked, noticed), (_detach(level, part, " FINALIZE"), _attach(level, part))


def _replaced(rng: random.Random, level: Level, scene: Scene) -> Ddl | None:
    """Return the replacement of a partition by two others with the same rows."""
    parts = [part for part in level.parts if part.piece.halves]
    if not parts:
        return None
    part = pick(rng, parts)
    assert part.piece.halves is not None
    added, dropped = _implied(rng, level, part, scene)
    pieces = (part.piece,) if added and chance(rng, 50) else part.piece.halves
    names = [f"{part.name}_half{number}" for number, _ in enumerate(pieces, 1)]
    made = [
        Step(f"CREATE TABLE {name} PARTITION OF {level.name} {piece.bound}")
        for name, piece in zip(names, pieces, strict=True)
    ]
    filled = Step(f"INSERT INTO {level.name} ({scene.names}) SELECT {scene.names} FROM {part.name}", tags=("replaced",))
    undone = (Step(f"DROP TABLE {', '.join(names)}"), _attach(level, part), *dropped)
    return (*added, _detach(level, part), *made, filled), undone


def _implied(rng: random.Random, level: Level, part: Part, scene: Scene) -> Ddl:
    """Return constraints of the default partition or its leaves which imply that these have no row of a partition.

    New partitions with its bound need no scan of the default partition then.
    """
    default = next((each for each in level.parts if each.is_default), None)
    if default is None or level not in (tree.level for tree in scene.trees) or not chance(rng, 80):
        return (), ()
    leaves = list(default.level.leaves) if default.level and chance(rng, 70) else [default]
    dropped = tuple(Step(f"ALTER TABLE {leaf.name} DROP CONSTRAINT implied") for leaf in leaves)
    return tuple(Step(_IMPLIED.format(leaf.name, part.name), tags=("implied",)) for leaf in leaves), dropped


_IMPLIED = (
    "DO $$ BEGIN EXECUTE format('ALTER TABLE {0} ADD CONSTRAINT implied CHECK (NOT (%s))',"
    " pg_get_partition_constraintdef('{1}'::regclass)); END $$"
)


def _defaulted(rng: random.Random, level: Level, scene: Scene) -> Ddl | None:
    """Return an additional default partition with a few rows."""
    if level.complete or level.method == "HASH":
        return None
    name = f"{level.name}_default"
    made = Step(f"CREATE TABLE {name} PARTITION OF {level.name} DEFAULT", tags=("default",))
    return (made,), (Step(f"DROP TABLE {name}"),)


def _indexed(rng: random.Random, level: Level, scene: Scene) -> Ddl:
    column = pick(rng, scene.columns).name
    return (Step(f"CREATE INDEX passing ON {level.name} ({column}, id)"),), (Step("DROP INDEX passing"),)


def _emptied(rng: random.Random, level: Level, scene: Scene) -> Ddl | None:
    """Return the detachment of all partitions."""
    if len(level.parts) > between(rng, 2, 6):
        return None
    parts = level.parts
    return tuple(_detach(level, part) for part in parts), tuple(_attach(level, part) for part in reversed(parts))


_CHANGES: Weighted[Callable[[random.Random, Level, Scene], Ddl | None]] = Weighted(
    (40, _detached), (32, _replaced), (12, _defaulted), (8, _indexed), (8, _emptied), (6, _pending)
)


class PrunedPartitions(Generator):
    """Queries and changes of two partition trees, with conditions exactly at their bounds."""

    name: ClassVar[str] = "pruned_partitions"
    cpu_seconds: ClassVar[float] = 0.9
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "loop_only+indexes",
        "indexes",
        "partitionwise",
        "hash_only+parallel+partitionwise",
        "merge_only+indexes",
        "merge_only+partitionwise",
        "loop_only+partitionwise",  # a loop over pairs of partitions costs less than one over all rows
        "prepared_generic",
        "extended",
        "prepared_custom",
        "prepared_generic+loop_only+indexes",
        "cursor",
        "closed_early",
    )

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: a scene, then queries, changes, cursors and prepared statements."""
        scene = draw_scene(rng, scale)
        begin(rng, Stream.ACTION)
        steps = [query(rng, scene)]
        while another(rng, len(steps), scale.queries):
            steps += ACTIONS.pick(rng)(rng, scene)
        return Case(self.name, scene.steps, tuple(steps))


def _queried(rng: random.Random, scene: Scene) -> tuple[Step, ...]:
    step = query(rng, scene)
    if "sorted" not in step.tags or chance(rng, 35):
        return (step,)
    return Step("SET enable_sort = off"), step, Step("RESET enable_sort")  # so that indexes supply the order


def _while_detaching(rng: random.Random, scene: Scene) -> tuple[Step, ...]:
    """Return queries and a change while a partition is being detached, some of them in one transaction."""
    made = _pending(rng, pick(rng, list(pick(rng, scene.trees).level.levels)), scene)
    if made is None:
        return _queried(rng, scene)
    marked, finished = made
    opened = Step(pick(rng, ("BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ")))
    together = (opened, query(rng, scene), query(rng, scene), Step("COMMIT"))
    row = excluded_row(rng, scene)
    return (*marked, query(rng, scene), *together, row, query(rng, scene), *finished, query(rng, scene))


ACTIONS: Weighted[Action] = Weighted(
    (312, _queried),
    (72, lambda rng, scene: CHANGES.pick(rng)(rng, scene)),
    (16, kept),
    (1, _while_detaching),  # rare, because only superusers may do this
)
