"""The class of the generator: changes of rows, each followed by the rows that both kinds of triggers logged."""

import random
from typing import ClassVar

from fuzz.generators.choices import Stream, another, begin, between, chance
from fuzz.generators.generator import Generator, Scale
from fuzz.generators.transition_tables.changes import checked_changes, draw_change
from fuzz.generators.transition_tables.scene import LOG, TARGET, Scene, draw_scene
from oracles.model.case import Case, Kind, SameRows, Step
from oracles.reported import REPORTED


class TransitionTables(Generator):
    """Every statement that changes rows, on trees whose row triggers and statement triggers must log the same rows."""

    name: ClassVar[str] = "transition_tables"
    cpu_seconds: ClassVar[float] = 0.8
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "loop_only",
        "hash_only",
        "merge_only",
        "indexes",
        "small_memory",
        "parallel",
        "partitionwise",
        "ordinary",
    )

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: a scene, then changes with their logs."""
        scene = draw_scene(rng, scale)
        begin(rng, Stream.ACTION)
        steps = _logged(rng, scene, 1)
        number = 1
        while another(rng, 2 * number, scale.queries):
            number += 1
            steps += _logged(rng, scene, number)
        if chance(rng, 30):
            begin(rng, Stream.ACTION)
            steps += checked_changes(rng, scene, number + 1)
        return Case(self.name, scene.steps, tuple(steps), samples=(REPORTED.name,), sampled_by_content=False)


def _logged(rng: random.Random, scene: Scene, number: int) -> list[Step]:
    """Return a change and two queries, which return the rows of row triggers and of statement triggers.

    Changes are rolled back, or the log is emptied.
    """
    change = draw_change(rng, scene, number)
    if scene.moves or chance(rng, 80):  # so that rows of the source keep their keys
        added = Step(f"ALTER TABLE {TARGET} ADD COLUMN x int4 DEFAULT {between(rng, 1, 9)}")
        widened = (added,) if chance(rng, 10) else ()
        return [Step("BEGIN"), *widened, change, *_queries(scene), Step("ROLLBACK")]
    return [change, *_queries(scene), Step(f"TRUNCATE {LOG}")]


def _queries(scene: Scene) -> tuple[Step, ...]:
    """Return the queries of both logs, and of the log of triggers of columns.

    An UPDATE that moves a row fires row triggers of DELETE and INSERT. Its transition tables are those of UPDATE. So
    events are compared only in scenes whose rows stay in their partitions.
    """
    columns = "version, content" if scene.moves else "event, version, content"
    rows, statement = (f"SELECT {columns} FROM {LOG} WHERE level = '{level}'" for level in ("ROW", "STATEMENT"))
    both = Step(rows, Kind.QUERY), Step(statement, Kind.QUERY, same_rows=SameRows.BY_TRIGGERS)
    noted = Step(f"SELECT version, event, content FROM {LOG} WHERE level = 'COLUMNS'", Kind.QUERY)
    return (*both, noted) if scene.notes else both
