"""Base class of sources, their context, and the registry `all_sources`.

Sources are generators with statements of another program, PostgreSQL's own tests or the user's files. A case depends on
the source context (`target`), the source and the seed. Each file or folder has one source.
"""

import random
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, Self

import psycopg

from fuzz import sources
from fuzz.errors import CaseError, ServerError
from fuzz.generators.generator import Generator, Scale
from oracles.model.case import Case, Step
from oracles.model.discovery import instances

UNPARSED: Final = "unparsed"  # tag of steps that pglast cannot parse; the summary counts them


@dataclass(frozen=True, slots=True)
class UserInput:
    """The user's input to sources, by options and the environment. Paths are absolute."""

    sql: str | None = None  # file or directory of SQL
    sqlancer_jar: str | None = None

    @property
    def sql_path(self) -> Path | None:
        """Return the path of the user's SQL, or None."""
        return None if self.sql is None else Path(self.sql)


class LostServer(ServerError):
    """A server was lost while a source used it. It had received the scene and these steps, or some of the scene."""

    def __init__(self, message: str, scene: Sequence[Step], steps: Sequence[Step]) -> None:
        super().__init__(message)
        self.scene = tuple(scene)
        self.steps = tuple(steps)


class SourceContext(Protocol):
    """The reference arm, as sources use it."""

    @property
    def name(self) -> str:
        """Return the name of the arm."""

    @property
    def trees(self) -> tuple[str, ...]:
        """Return the git trees after each prefix of the arm's series, in the repository of trees; first its base."""

    @property
    def arms(self) -> "Sequence[SourceContext]":
        """Return the contexts of all arms whose patches' own tests are wanted; if there are some, this is the first."""

    @property
    def given(self) -> UserInput:
        """Return the user's input."""

    @property
    def extensions(self) -> frozenset[str]:
        """Return the names of the available extensions. Raises ServerError."""

    def session(self, scene: Sequence[Step]) -> AbstractContextManager[psycopg.Connection[Any]]:
        """Enter a session in a new database, like that of a case, in which the scene has been executed.

        Only one session may be open at a time. It is in autocommit mode. Raises ServerError; LostServer if the server
        is lost meanwhile.
        """


class Source(Generator):
    """A generator that needs a source context. `on` returns the source with one."""

    name: ClassVar[str]
    # Modes for statements of any kind.
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "partitionwise",
        "hash_spilling",
        "hash_spilling+parallel",
        "hash_spilling+features_forced",
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
    # modes, named as in `modes`; at the start, all parts run once under each of them
    rounds: ClassVar[tuple[str, ...]] = ()
    default_weight: ClassVar[int] = 1  # share of the CPU time for sources in a run without options; 0: none

    def __init__(self, target: SourceContext | None = None) -> None:
        self._target = target

    def on(self, target: SourceContext | None) -> Self:
        """Return this source with a source context."""
        return type(self)(target)

    @property
    def target(self) -> SourceContext:
        """Return the source context. Raises CaseError if there is none."""
        if self._target is None:
            raise CaseError(f"{self.name} takes its statements for a running arm: name it to `pgduel fuzz` or `replay`")
        return self._target

    def parts(self) -> tuple[str, ...]:
        """Return the names of items that are replayed as a whole, or (). Raises CaseError, ServerError."""
        return ()

    def first_parts(self) -> tuple[str, ...]:
        """Return the names of items that run before all others, once under all modes. Raises SourceError, ServerError.

        `Source.replay` returns their cases, too.
        """
        return ()

    def remarks(self) -> tuple[str, ...]:
        """Return lines about statements that no case has. Raises CaseError if there are no others, and ServerError."""
        self.parts()
        return ()

    def replay(self, part: str, rng: random.Random, scale: Scale) -> Case:
        """Return the case of a part. Raises CaseError, ServerError."""
        raise NotImplementedError

    @classmethod
    @abstractmethod
    def lacks(cls, given: UserInput) -> str:
        """Return a short text about a missing prerequisite of this source, or "" if nothing is missing."""


def all_sources() -> dict[str, Source]:
    """Return name → instance of each source in this package, sorted. The instances have no source context."""
    return {source.name: source for source in instances(Source, sources)}  # type: ignore[type-abstract]
