"""Scene of `many_partitions`: tables with few and with many children, some with equal layouts."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fuzz.generators import loopback
from fuzz.generators.choices import Weighted, between, chance
from fuzz.generators.generator import Scale
from fuzz.generators.many_partitions.keys import KEYS, Key
from fuzz.generators.many_partitions.parents import ChildLayout, Parent, draw_parent, steps_of
from oracles.model.case import Step

# Upper bounds of the children of the largest table.
_MANY = Weighted((40, 5), (20, 12), (20, 40), (12, 150), (5, 500), (3, 1024))
_METHODS = Weighted((40, "RANGE"), (20, "LIST"), (22, "HASH"), (18, "INHERITS"))
_MOST_INHERITING = 24  # upper bound of inheritance children


@dataclass(frozen=True, slots=True)
class Scene:
    """The tables of a case, and the steps that create them. The first table has the most children."""

    key: Key
    parents: tuple[Parent, ...]
    steps: tuple[Step, ...]


def draw_scene(rng: random.Random, scale: Scale) -> Scene:
    """Return a scene of three to five tables."""
    key = KEYS.pick(rng)
    rows = between(rng, max(2, scale.rows // 20), max(3, scale.rows // 4))
    many = _form(rng, scale, rows, _MANY.pick(rng))
    large = draw_parent(rng, "r1", key, many)
    twin = draw_parent(rng, "r2", key, many, large)
    others = [replace(many, method="", children=0, nested=False)]
    others += [_form(rng, scale, rows, 6) for _ in range(rng.randrange(3))]
    parents = (large, twin, *(draw_parent(rng, f"r{n}", key, form) for n, form in enumerate(others, 3)))
    made = (step for parent in parents for step in steps_of(rng, parent))
    return Scene(key, parents, (*_prologue(key, parents), *made))


def _form(rng: random.Random, scale: Scale, rows: int, most: int) -> ChildLayout:
    """Return a layout with at most `most` children. Above `_MOST_INHERITING`, it has exactly that many."""
    method = _METHODS.pick(rng)
    most = max(2, min(most, scale.partitions * 90, _MOST_INHERITING if method == "INHERITS" else most))
    children = most if most > _MOST_INHERITING else between(rng, 1, most)
    step = max(1, children // rows)
    return ChildLayout(method, children, step, rows, nested=children <= _MOST_INHERITING and chance(rng, 20))


def _prologue(key: Key, parents: tuple[Parent, ...]) -> Iterator[Step]:
    yield Step(key.function)
    if any(parent.foreign for parent in parents):
        yield from map(Step, loopback.PROLOGUE)
