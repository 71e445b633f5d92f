"""The context of a source: the arm whose catalogs it reads, and the input of the user."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psycopg

from oracles.model.case import Step


@dataclass(frozen=True, slots=True)
class UserInput:
    """The user's input to sources, by options and the environment. Paths are absolute."""

    sql: str | None = None  # file or directory of SQL
    sqlancer_jar: str | None = None

    @property
    def sql_path(self) -> Path | None:
        """Return the path of the user's SQL, or None."""
        return None if self.sql is None else Path(self.sql)


class SourceContext(Protocol):
    """The reference arm, as sources use it."""

    @property
    def tree(self) -> str:
        """Return the git tree of the arm's base, in the repository of trees."""

    @property
    def given(self) -> UserInput:
        """Return the user's input."""

    @property
    def extensions(self) -> frozenset[str]:
        """Return the names of the available extensions. Raises ServerError."""

    def session(self, scene: Sequence[Step]) -> AbstractContextManager[psycopg.Connection[Any]]:
        """Enter a session in a new database, like that of a case, in which the scene has been executed.

        Only one session may be open at a time. It is in autocommit mode. Raises ServerError.
        """
