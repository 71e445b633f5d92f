"""The class of the generator: queries and changes of foreign tables."""

import random
from typing import ClassVar

from fuzz.generators.choices import Stream, Weighted, another, begin, chance
from fuzz.generators.foreign_tables.changes import action
from fuzz.generators.foreign_tables.queries import query
from fuzz.generators.foreign_tables.scene import draw_scene, with_stable_plans
from fuzz.generators.generator import Generator, Scale
from oracles.framework.shared_runs import PLANNED, REPEATED
from oracles.model.case import Case

_STATEMENTS = 3  # of an action, at most: each has new keys of its own
_SAMPLES = Weighted((79, ()), (15, (PLANNED.name,)), (6, (REPEATED.name,)))


class ForeignTables(Generator):
    """Joins, groups and changes of foreign tables of two servers, and of trees with foreign partitions."""

    name: ClassVar[str] = "foreign_tables"
    cpu_seconds: ClassVar[float] = 1.2
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "loop_only",
        "hash_only",
        "merge_only",
        "indexes",
        "small_memory",
        "partitionwise",
        "partitionwise+no_loops",
        "extended",
        "prepared_generic",
        "prepared_custom",
        "cursor",
        "closed_early",
    )

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: a scene, then queries and changes, or only queries, whose plans are compared.

        Others have no stable plans: remote estimates depend on the sizes of tables, and so on what VACUUM and pruning
        could remove.
        """
        samples = _SAMPLES.pick(rng)
        planned = PLANNED.name in samples
        scene = draw_scene(rng, scale)
        made = with_stable_plans(scene) if planned else scene.steps
        begin(rng, Stream.ACTION)
        steps = [query(rng, scene)]
        number = 1
        while another(rng, number, scale.queries):
            steps += [query(rng, scene)] if planned or chance(rng, 45) else action(rng, scene, _STATEMENTS * number)
            number += 1
        return Case(self.name, made, tuple(steps), samples=samples, sampled_by_content=False)
