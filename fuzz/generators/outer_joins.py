"""Hash joins of all kinds in several batches: what a filter over the hashed side may drop, and what it must emit."""

import random
from collections.abc import Callable
from typing import ClassVar

from fuzz.generators.choices import Weighted
from fuzz.generators.generator import Generator, Scale
from fuzz.generators.hashing.cursors import cursor
from fuzz.generators.hashing.failures import failure
from fuzz.generators.hashing.levels import draw_kind, level
from fuzz.generators.hashing.scene import Scene, draw_scene
from fuzz.generators.hashing.shapes import SHAPES, draw_rescan, keyed
from fuzz.generators.relational.queries import ended, query
from fuzz.generators.relational.scope import Scope
from oracles.case import Case, Kind, Step


class OuterJoins(Generator):
    """A large, a middling and a small table, joined by one kind of key, in memory that is too small for most."""

    name: ClassVar[str] = "outer_joins"
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
        "hash_only+filter_forced",
        "hash_only+parallel+one_worker+filter_forced",
        "hash_only+parallel+two_workers+filter_forced",
        "hash_only+parallel+four_workers+filter_forced",
        "extended",
        "prepared_generic",
        "prepared_custom",
        "cursor",
        "closed_early",
    )

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: a scene of three tables, and perhaps a function, then joins of them."""
        scene = draw_scene(rng, scale)
        most = max(2, scale.relations // 2)
        acts = [_joined(rng, scene, most)]
        while len(acts) < max(1, scale.queries // 7) and rng.randrange(100):  # a shrinking rng stops here
            acts.append(ACTS.pick(rng)(rng, scene, most))
        return Case(self.name, scene.steps, tuple(step for steps in acts for step in steps))


def _joined(rng: random.Random, scene: Scene, most: int) -> tuple[Step, ...]:
    kind, rescan = draw_kind(rng, scene.axes), draw_rescan(rng, scene)
    select = SHAPES[rescan](rng, scene, kind, most)
    if select is None:
        rescan, select = "none", SHAPES["none"](rng, scene, kind, most)
        assert select is not None
    sql, ordered = ended(rng, select)
    return (Step(sql, Kind.QUERY, ordered=ordered, tags=_tags(scene, kind, f"rescan.{rescan}")),)


def _walked(rng: random.Random, scene: Scene, most: int) -> tuple[Step, ...]:
    kind = draw_kind(rng, scene.axes)
    select = keyed(rng, level(rng, scene, Scope(()), kind, most))
    return cursor(rng, select, _tags(scene, kind, "cursor"))


def _failing(rng: random.Random, scene: Scene, most: int) -> tuple[Step, ...]:
    kind = draw_kind(rng, scene.axes)
    return failure(rng, scene, kind, most, _tags(scene, kind))


def _any(rng: random.Random, scene: Scene, most: int) -> tuple[Step, ...]:
    """Return any query at all over the scene, unless it could show one of several equal keys."""
    if not scene.axes.key.mixes:
        return _joined(rng, scene, most)
    return (query(rng, scene.sources, most),)


def _tags(scene: Scene, kind: str, *others: str) -> tuple[str, ...]:
    return (*scene.axes.tags, f"join.{kind}", *others)


ACTS: Weighted[Callable[[random.Random, Scene, int], tuple[Step, ...]]] = Weighted(
    (74, _joined), (8, _walked), (9, _failing), (9, _any)
)
