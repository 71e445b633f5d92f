"""Acts: the steps of one thing that is done with joins of a scene: a query, a cursor's walk, an error in the middle."""

import random
from collections.abc import Callable

from fuzz.generators.choices import Weighted
from fuzz.generators.hashing.cursors import cursor
from fuzz.generators.hashing.failures import failure
from fuzz.generators.hashing.levels import draw_kind, level
from fuzz.generators.hashing.scene import Scene
from fuzz.generators.hashing.shapes import SHAPES, draw_rescan, keyed
from fuzz.generators.relational.queries import ended, query
from fuzz.generators.relational.scope import Scope
from oracles.case import Kind, Step

Act = Callable[[random.Random, Scene, int], tuple[Step, ...]]  # scene, most relations


def joined(rng: random.Random, scene: Scene, most: int) -> tuple[Step, ...]:
    """Return a query over joins, rescanned in some way."""
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
        return joined(rng, scene, most)
    return (query(rng, scene.sources, most),)


def _tags(scene: Scene, kind: str, *others: str) -> tuple[str, ...]:
    return (*scene.axes.tags, f"join.{kind}", *others)


ACTS: Weighted[Act] = Weighted((74, joined), (8, _walked), (9, _failing), (9, _any))
