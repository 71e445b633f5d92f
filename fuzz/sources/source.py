"""Source: a generator whose statements come from elsewhere: a program, PostgreSQL's own tests, the user's files.

A case is a function of the target, the source and the seed. One source a file; `all_sources` finds them.
"""

from abc import abstractmethod
from typing import ClassVar, Self

from fuzz import sources
from fuzz.errors import CaseError
from fuzz.generators.generator import Generator
from fuzz.sources.target import Given, Target
from oracles.discovery import instances


class Source(Generator):
    """A workload for a target: `on` one, it generates as any generator does."""

    name: ClassVar[str]

    def __init__(self, target: Target | None = None) -> None:
        self._target = target

    def on(self, target: Target | None) -> Self:
        """Return this source, taking statements for a target."""
        return type(self)(target)

    @property
    def target(self) -> Target:
        """The target. Raises CaseError where there is none."""
        if self._target is None:
            raise CaseError(f"{self.name} takes its statements for a running arm: name it to `pgduel fuzz` or `replay`")
        return self._target

    @classmethod
    @abstractmethod
    def lacks(cls, given: Given) -> str:
        """Return in a few words what there must be for this source and is not; nothing if all is there."""


def all_sources() -> dict[str, Source]:
    """Return an instance of each source in this package, without a target, by name, sorted."""
    return {source.name: source for source in instances(Source, sources)}  # type: ignore[type-abstract]
