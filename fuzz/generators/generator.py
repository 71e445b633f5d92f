"""Generator: turns randomness into cases. One workload a file; `all_generators` finds them."""

import random
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from fuzz import generators
from fuzz.generators.choices import pick
from oracles.model.case import Case, Step
from oracles.model.discovery import instances


@dataclass(frozen=True, slots=True)
class Scale:
    """How large a case may get: rows in a table, relations in a join, partitions of a table, queries on a scene."""

    rows: int = 300
    relations: int = 8
    partitions: int = 12
    queries: int = 30

    @classmethod
    def of_arms(cls, count: int) -> Self:
        """Return the scale of a campaign on so many arms.

        What a single one answers is held against what else it answers: so more queries, over fewer rows.
        """
        return cls(rows=100, queries=90) if count == 1 else cls()


class Generator(ABC):
    """A workload. Uses only the `rng` it is given, so that a seed or Hypothesis can drive it."""

    name: ClassVar[str]
    # Under which its cases make sense: names from fuzz/execution/modes.py, or several joined by + (a composition).
    modes: ClassVar[tuple[str, ...]]

    @abstractmethod
    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case that is a function of the arguments alone, legal by construction."""


def all_generators() -> dict[str, Generator]:
    """Return an instance of each generator in this package, by name, sorted."""
    return {generator.name: generator for generator in instances(Generator, generators)}  # type: ignore[type-abstract]


def small_scene(rng: random.Random, scale: Scale) -> tuple[Step, ...]:
    """Return the scene of any generator with a fifth of the rows, for statements that join them without conditions."""
    small = replace(scale, rows=scale.rows // 5, queries=1)
    return pick(rng, list(all_generators().values())).generate(rng, small).scene
