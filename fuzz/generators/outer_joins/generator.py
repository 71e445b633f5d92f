"""Generator `outer_joins`: hash joins of all kinds in several batches, with and without a filter."""

import random
from typing import ClassVar

from fuzz.generators.generator import Generator, Scale
from fuzz.generators.outer_joins.actions import ACTIONS, joined
from fuzz.generators.outer_joins.scene import draw_scene
from oracles.model.case import Case


class OuterJoins(Generator):
    """Joins of a large, a medium and a small table over one kind of key; most exceed the memory of a hash table."""

    name: ClassVar[str] = "outer_joins"
    cpu_seconds: ClassVar[float] = 1.1
    modes: ClassVar[tuple[str, ...]] = (
        "hash_only",
        "hash_only+partitionwise",
        "no_loops",
        "no_loops+partitionwise",
        "hash_only+no_pruning+partitionwise",
        "hash_only+indexes",
        "hash_only+parallel+one_worker",
        "hash_only+parallel+two_workers+partitionwise",
        "hash_only+parallel+four_workers",
        "hash_only+features_forced",
        "hash_only+parallel+one_worker+features_forced",
        "hash_only+parallel+two_workers+features_forced",
        "hash_only+parallel+four_workers+features_forced",
        "extended",
        "prepared_generic",
        "prepared_custom",
        "cursor",
        "closed_early",
    )
    scene_weight: ClassVar[int] = 1
    query_weight: ClassVar[int] = 4

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: a scene of three tables, and perhaps a function, then actions on joins of them."""
        scene = draw_scene(rng, scale)
        most = max(2, scale.relations // 2)
        actions = [joined(rng, scene, most)]
        while len(actions) < max(1, scale.queries // 7) and rng.randrange(100):  # a shrinking rng ends the loop
            actions.append(ACTIONS.pick(rng)(rng, scene, most))
        return Case(self.name, scene.steps, tuple(step for steps in actions for step in steps))
