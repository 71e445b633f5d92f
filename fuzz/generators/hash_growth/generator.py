"""Generator `hash_growth`: hash tables of misestimated size, near the sizes where they grow or spill."""

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from fuzz.generators.choices import chance
from fuzz.generators.generator import Generator, Scale
from fuzz.generators.hash_growth.scene import PARAMETER, Grown, Growth, draw_growth
from fuzz.generators.outer_joins.actions import ACTIONS, joined
from oracles.explain.nodes import EXPLAINED
from oracles.model.case import Case, Step


class HashGrowth(Generator):
    """Joins of a table whose hash table is about to double, under wrong estimates."""

    name: ClassVar[str] = "hash_growth"
    cpu_seconds: ClassVar[float] = 2.1
    modes: ClassVar[tuple[str, ...]] = (
        "hash_only",
        "no_loops",
        "hash_only+features_forced",
        "hash_only+parallel+one_worker",
        "hash_only+parallel+two_workers",
        "hash_only+parallel+four_workers",
        "hash_only+parallel+two_workers+features_forced",
        "extended",
        "prepared_generic",
        "prepared_custom",
        "cursor",
        "closed_early",
    )
    scene_weight: ClassVar[int] = 1
    query_weight: ClassVar[int] = 3

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: a scene with misestimated sources, then joins of them."""
        growth = draw_growth(rng, scale)
        most = max(2, scale.relations // 2)
        actions = [joined(rng, growth.scene, most)]
        while len(actions) < max(1, scale.queries // 6) and rng.randrange(100):  # a shrinking rng ends the loop
            actions.append(_action(rng, growth, most))
        grown = (*growth.grown, growth.generic)
        steps = tuple(_tagged(step, grown) for steps in actions for step in steps)
        samples = (EXPLAINED.name,) if growth.immense else ()  # needless batches are only in the output of EXPLAIN
        return Case(self.name, growth.scene.steps, steps, samples=samples)


def _action(rng: random.Random, growth: Growth, most: int) -> tuple[Step, ...]:
    if not chance(rng, 15):
        return ACTIONS.pick(rng)(rng, growth.scene, most)
    (step,) = joined(rng, growth.parameterized, most)
    return (replace(step, params=(str(growth.generic.size),)) if PARAMETER in step.sql else step,)


def _tagged(step: Step, grown: Iterable[Grown]) -> Step:
    """Return the step with the tags of the sources that it uses."""
    tags = {tag: None for each in grown if each.source.name in step.sql for tag in each.tags}
    return replace(step, tags=(*step.tags, *tags))
