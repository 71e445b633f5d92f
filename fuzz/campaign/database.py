"""The database of a store: a SQLite file in the campaign's directory, or a schema of the database in $PGDUEL_STORE."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from math import inf
from pathlib import Path
from typing import Final, Protocol, TypeVar

from sqlalchemy import Connection, Executable, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from fuzz import workdir
from fuzz.campaign.postgresql import PostgreSQL, shared
from fuzz.campaign.schema import StoreError
from fuzz.campaign.sqlite import FILE, SQLite
from fuzz.errors import TransientError

PATIENCE: Final = 600.0  # seconds in which a server may start again, or other processes may end
_PAUSE: Final = 1.0  # seconds between tries

_Result = TypeVar("_Result")
Say = Callable[[str], None]


class Database(Protocol):
    """Interface of a store's database. Its methods raise SQLAlchemyError and StoreError."""

    @property
    def name(self) -> str:
        """Return its name in messages."""

    @property
    def is_shared(self) -> bool:
        """Return whether other machines use it, too."""

    def begin(self) -> AbstractContextManager[Connection]:
        """Open a transaction, and commit it at the end."""

    def reading(self) -> AbstractContextManager[Connection]:
        """Open a connection for one query."""

    def in_turn(self) -> AbstractContextManager[Connection]:
        """Open a transaction, and commit it at the end. One campaign at a time has one. Raises StorageError."""

    def insert(self, table: Table) -> postgresql.Insert | sqlite.Insert:
        """Return the statement that inserts into a table."""

    def locking(self, table: Table) -> Sequence[Executable]:
        """Return the statements after which no other transaction changes a table before this one ends."""

    def prepare(self) -> None:
        """Create the tables of a new store, or migrate an older one. Raises StoreError for a newer one."""

    def vacuum(self, *tables: Table) -> None:
        """Return the space of deleted rows of these tables to the disk."""

    def size(self) -> int:
        """Return the bytes on disk of its tables, unless they are in a file of the campaign's directory."""

    def claim(self, *names: str) -> None:
        """Be the only process that runs this campaign, and has these names, until `close`."""

    def error(self, error: SQLAlchemyError) -> StoreError:
        """Return the error of a store for one of SQLAlchemy."""

    def close(self) -> None:
        """End the claims, and close connections."""


def home() -> Path:
    """Return the directory of the numbered campaigns. Each shared database has its own. Raises PgduelError."""
    server = shared()
    return workdir.campaigns() if server is None else workdir.shared_campaigns(server.directory)


def database_of(directory: Path) -> Database:
    """Return the database of the campaign in a directory. Raises StoreError."""
    server = shared()
    if server is not None and directory.parent == home():
        return PostgreSQL(server, int(directory.name))
    return SQLite(directory / FILE)


def outlasted(work: Callable[[], _Result], say: Say | None) -> _Result:
    """Return the result of `work`, which is tried again after a TransientError: a store or a disk may recover.

    `say` gets a line then, and another one when `work` succeeds. Without `say`, and after ten minutes, raises the
    error.
    """
    until, told = inf, ""
    while True:
        try:
            result = work()
        except TransientError as error:
            until = min(until, time.monotonic() + PATIENCE)
            if say is None or time.monotonic() > until:
                raise
            if not told:
                say(f"{error}; trying again for {PATIENCE / 60:g} minutes")
                told = error.passed
            time.sleep(_PAUSE)
        else:
            if told and say is not None:
                say(told)
            return result
