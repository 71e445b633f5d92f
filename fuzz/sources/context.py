"""The context of a source: the arm whose catalogs it reads, and the input of the user."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import psycopg

from oracles.model.case import Step


@dataclass(frozen=True, slots=True)
class UserInput:
    """What sources take from the user, by options and the environment. Paths are absolute."""

    sql: str | None = None  # a file or directory of SQL
    sqlancer_jar: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what the class takes as arguments."""
        return asdict(self)

    @property
    def sql_path(self) -> Path | None:
        """Return where the user's SQL is."""
        return None if self.sql is None else Path(self.sql)


class SourceContext(Protocol):
    """The arm that others are held against, as a source sees it."""

    @property
    def tree(self) -> str:
        """The git tree of the arm's base, in the repository of trees."""

    @property
    def given(self) -> UserInput:
        """What the user gave."""

    @property
    def extensions(self) -> frozenset[str]:
        """The names of the extensions that can be made there. Raises ServerError."""

    def played(self, scene: Sequence[Step]) -> AbstractContextManager[psycopg.Connection[Any]]:
        """Enter a session in a database as new as that of a case, in which the scene was played; at most one at once.

        The session is in autocommit mode. Raises ServerError.
        """
