"""Joins of tables with up to a thousand children by classes of equal keys, whose members a planner has to find."""

import random
from collections.abc import Callable
from typing import ClassVar

from fuzz.generators.choices import Weighted, between, chance, pick
from fuzz.generators.equivalence.changes import change
from fuzz.generators.equivalence.scene import Scene, draw_scene
from fuzz.generators.equivalence.tops import TOPS, totalled
from fuzz.generators.equivalence.trees import draw_tree
from fuzz.generators.generator import Generator, Scale
from fuzz.generators.relational.queries import ended
from oracles.case import Case, Kind, Step

_RELATIONS = Weighted((26, 2), (26, 3), (16, 4), (10, 5), (5, 1), (6, 6), (4, 7), (4, 8), (1, 10), (2, 12))


class ManyPartitions(Generator):
    """A table with few or many children, its twin, and others, joined with themselves and with each other."""

    name: ClassVar[str] = "many_partitions"
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "partitionwise",
        "merge_only",
        "merge_only+partitionwise",
        "merge_only+indexes",
        "loop_only+indexes",
        "loop_only+indexes+partitionwise",
        "hash_only+partitionwise",
        "no_loops+indexes",
        "genetic",
        "genetic+partitionwise",
        "hash_only+parallel+partitionwise",
        "no_pruning",
        "extended",
        "prepared_generic",
        "prepared_custom",
        "cursor",
        "closed_early",
    )

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: a scene of three to five tables, then queries, and plans that are kept across changes."""
        scene = draw_scene(rng, scale)
        most = scale.relations + scale.relations // 2
        acts = [_asked(rng, scene, most)]
        while len(acts) < max(1, scale.queries // 3) and rng.randrange(100):  # a shrinking rng stops here
            acts.append(ACTS.pick(rng)(rng, scene, most))
        return Case(self.name, scene.steps, tuple(step for steps in acts for step in steps))


def _asked(rng: random.Random, scene: Scene, most: int) -> tuple[Step, ...]:
    given = chance(rng, 15)
    parameter = f"$1::{scene.key.types[0].name}" if given else ""
    tree = draw_tree(rng, scene, min(most, _RELATIONS.pick(rng)), parameter)
    select = TOPS.pick(rng)(rng, tree)
    sql, ordered = ended(rng, select)
    params = (scene.key.types[0].text(_value(rng, scene)),) if given else ()
    return (Step(sql, Kind.QUERY, params=params, ordered=ordered, tags=tuple(sorted(set(select.kinds)))),)


def _kept(rng: random.Random, scene: Scene, most: int) -> tuple[Step, ...]:
    """Return executions of one prepared statement before, during and after a change of a table."""
    type_ = scene.key.types[0]
    tree = draw_tree(rng, scene, min(most, 3), pick(rng, (f"$1::{type_.name}", "")))
    needed = f" ({type_.name})" if any("$1" in condition for condition in tree.conditions) else ""
    given = f" ({type_.literal(_value(rng, scene))})" if needed else ""
    execute = Step(f"EXECUTE kept{given}")
    changed, undone = (Step(sql) for sql in change(rng, pick(rng, scene.parents)))
    generic = (Step("SET plan_cache_mode = force_generic_plan"),) if chance(rng, 60) else ()
    return (
        *generic, Step(f"PREPARE kept{needed} AS {totalled(rng, tree).sql}", tags=("kept",)), execute, changed, execute,
        execute, undone, execute, Step("DEALLOCATE kept"), *(Step("RESET plan_cache_mode") for _ in generic),
    )  # fmt: skip


def _value(rng: random.Random, scene: Scene) -> int:
    form = pick(rng, scene.parents).form
    return between(rng, 0, form.rows) * form.step


ACTS: Weighted[Callable[[random.Random, Scene, int], tuple[Step, ...]]] = Weighted((90, _asked), (10, _kept))
