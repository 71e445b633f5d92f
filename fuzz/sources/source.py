"""Source: a generator whose statements come from elsewhere: a program, PostgreSQL's own tests, the user's files.

A case is a function of the target, the source and the seed. One source a file; `all_sources` finds them.
"""

import random
from abc import abstractmethod
from typing import ClassVar, Self

from fuzz import sources
from fuzz.errors import CaseError
from fuzz.generators.generator import Generator, Scale
from fuzz.sources.context import SourceContext, UserInput
from oracles.model.case import Case
from oracles.model.discovery import instances


class Source(Generator):
    """A workload for a target: `on` one, it generates as any generator does."""

    name: ClassVar[str]
    # For statements that were written with none in mind.
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "partitionwise",
        "hash_spilling",
        "hash_spilling+parallel",
        "hash_spilling+filter_forced",
        "small_memory",
        "merge_only",
        "loop_only+indexes",
        "no_loops",
        "no_pruning",
        "genetic",
        "parallel",
        "extended",
        "prepared_generic",
        "prepared_custom",
        "cursor",
        "closed_early",
    )
    rounds: ClassVar[tuple[str, ...]] = ()  # modes, as in `modes`, under each of which all parts run once to begin with

    def __init__(self, target: SourceContext | None = None) -> None:
        self._target = target

    def on(self, target: SourceContext | None) -> Self:
        """Return this source, taking statements for a target."""
        return type(self)(target)

    @property
    def target(self) -> SourceContext:
        """The target. Raises CaseError where there is none."""
        if self._target is None:
            raise CaseError(f"{self.name} takes its statements for a running arm: name it to `pgduel fuzz` or `replay`")
        return self._target

    def parts(self) -> tuple[str, ...]:
        """Return what the source replays whole, by name; nothing if it only draws. Raises CaseError, ServerError."""
        return ()

    def replay(self, part: str, rng: random.Random, scale: Scale) -> Case:
        """Return the case of a part. Raises CaseError, ServerError."""
        raise NotImplementedError

    @classmethod
    @abstractmethod
    def lacks(cls, given: UserInput) -> str:
        """Return in a few words what there must be for this source and is not; nothing if all is there."""


def all_sources() -> dict[str, Source]:
    """Return an instance of each source in this package, without a target, by name, sorted."""
    return {source.name: source for source in instances(Source, sources)}  # type: ignore[type-abstract]
