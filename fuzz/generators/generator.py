"""Base class of generators, their scale, and the registry `all_generators`."""

import random
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from fuzz import generators
from fuzz.generators.choices import pick_name
from oracles.model.case import Case, Step
from oracles.model.discovery import instances


@dataclass(frozen=True, slots=True)
class Scale:
    """Upper bounds of a case's size: rows per table, relations per join, partitions per table, queries per scene."""

    rows: int = 300
    relations: int = 8
    partitions: int = 12
    queries: int = 30

    @classmethod
    def of_arms(cls, count: int) -> Self:
        """Return the scale of a campaign on `count` arms.

        On a single arm, oracles compare queries with each other. They need more queries, and get fewer rows in
        exchange.
        """
        return cls(rows=100, queries=90) if count == 1 else cls()

    def actions(self, queries: int) -> int:
        """Return the maximum of actions that each count as `queries` queries: at least two, from four queries on.

        The second one runs in the session of the first, on its data and cached plans.
        """
        return max(1, min(2, self.queries // 2), self.queries // queries)


class Generator(ABC):
    """A generator of cases. It draws only from the given `rng`, so a seed or Hypothesis can drive it."""

    name: ClassVar[str]
    # Suitable modes: names from fuzz/execution/modes, or compositions of them (joined by +).
    modes: ClassVar[tuple[str, ...]]
    scene_weight: ClassVar[int] = 0  # share of its scenes among those that sources use; 0: none
    query_weight: ClassVar[int] = 0  # share of its queries among those that the source `qpg` uses; 0: none
    # CPU time of a case, as `pgduel fuzz --generator NAME --cases 48 --verbose` prints it for the shipped arms. It
    # decides how many cases a run without options has of a source.
    cpu_seconds: ClassVar[float] = 2.0

    @abstractmethod
    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case that is legal by construction and depends on the arguments alone."""


def all_generators() -> dict[str, Generator]:
    """Return an instance of each generator in this package, by name, sorted."""
    return {generator.name: generator for generator in instances(Generator, generators)}  # type: ignore[type-abstract]


def small_scene(rng: random.Random, scale: Scale) -> tuple[Step, ...]:
    """Return the scene of a random generator with a fifth of the rows.

    It suits statements that join tables without conditions.
    """
    small = replace(scale, rows=scale.rows // 5, queries=1)
    generators = all_generators()
    name = pick_name(rng, {name: generator.scene_weight for name, generator in generators.items()})
    return generators[name].generate(rng, small).scene
