"""The class of the generator: a statement for the other session, a change or a locking query, and the rows then."""

import random
from typing import ClassVar

from fuzz.generators.choices import Stream, another, begin, chance
from fuzz.generators.concurrent_changes.changes import draw_turn
from fuzz.generators.concurrent_changes.scene import draw_scene
from fuzz.generators.generator import Generator, Scale
from oracles.framework.shared_runs import REPEATED
from oracles.model.case import Case


class ConcurrentChanges(Generator):
    """Changes and row locks of rows that another session changed after the snapshot."""

    name: ClassVar[str] = "concurrent_changes"
    cpu_seconds: ClassVar[float] = 0.6
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "loop_only",
        "hash_only",
        "merge_only",
        "indexes",
        "small_memory",
        "partitionwise",
    )

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: a scene, then turns of both sessions."""
        samples = (REPEATED.name,) if chance(rng, 6) else ()
        scene = draw_scene(rng, scale)
        begin(rng, Stream.ACTION)
        steps = draw_turn(rng, scene, 1)
        number = 1
        while another(rng, 3 * number, scale.queries):
            number += 1
            steps += draw_turn(rng, scene, number)
        return Case(self.name, scene.steps, tuple(steps), samples=samples, sampled_by_content=False)
