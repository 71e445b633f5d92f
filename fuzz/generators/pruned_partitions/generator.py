"""Generator `pruned_partitions`: conditions at the bounds of partition trees, pruned at each stage of a query."""

import random
from collections.abc import Callable
from typing import ClassVar

from fuzz.generators.choices import Weighted
from fuzz.generators.generator import Generator, Scale
from fuzz.generators.pruned_partitions.changes import CHANGES
from fuzz.generators.pruned_partitions.kept import kept
from fuzz.generators.pruned_partitions.queries import query
from fuzz.generators.pruned_partitions.scene import Scene, draw_scene
from oracles.model.case import Case, Step

Action = Callable[[random.Random, Scene], tuple[Step, ...]]


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
        steps = [query(rng, scene)]
        while len(steps) < scale.queries and rng.randrange(100):  # a shrinking rng ends the loop
            steps += ACTIONS.pick(rng)(rng, scene)
        return Case(self.name, scene.steps, tuple(steps))


def _queried(rng: random.Random, scene: Scene) -> tuple[Step, ...]:
    return (query(rng, scene),)


ACTIONS: Weighted[Action] = Weighted((81, _queried), (15, lambda rng, scene: CHANGES.pick(rng)(rng, scene)), (4, kept))
