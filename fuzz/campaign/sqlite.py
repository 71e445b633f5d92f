"""Stores in SQLite: a file in each campaign's directory, with the version in `PRAGMA user_version`.

Several processes write to it: each worker its findings, the campaign its progress. So it has a write-ahead log, and
they write in turn. SQLite alone would prefer the process that began to wait last: it tries again at longer and longer
intervals, and gives up at some time.
"""

import fcntl
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Executable, Table, create_engine
from sqlalchemy.dialects.sqlite import Insert, insert
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from fuzz import workdir
from fuzz.campaign.schema import VERSION, StoreBusy, StoreError, StoreFull, create_tables, migrate, require_readable
from fuzz.errors import first_line

FILE: Final = "store.sqlite"
_OWNER: Final = f"{FILE}.owner"
_LOCK_TIMEOUT: Final = 2000  # ms, in which another process may end its own migration
_TIMEOUT: Final = 60.0  # seconds in which the processes before this one may write, or another program may end
_ADVICE: Final = {
    "SQLITE_CANTOPEN": "; make its directory writable, which reading needs, too, or read a copy",
    "SQLITE_READONLY": "; make it and its directory writable",
}
_FULL: Final = ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")
_BUSY: Final = ("SQLITE_BUSY", "SQLITE_PROTOCOL")  # the second one after many tries to begin to read


class Turns:
    """The turns of processes that write to one file, in the order in which they request them.

    A turn is a lock of the kernel (flock) on a directory, so it ends with its process. The kernel keeps the order of
    requests, but has no limit of time, so a thread waits for it.
    """

    def __init__(self, directory: Path) -> None:
        """Nothing is opened before the first turn."""
        self._directory = directory
        self._waiting = threading.local()  # requests, so that each thread keeps its place

    def take(self, seconds: float) -> int:
        """Wait for a turn, and return the file descriptor with its lock, for `end_turn`.

        Raises TimeoutError, after which the next call keeps the place in the order, and OSError.
        """
        self._waiting.request = request = self._request or self._requested()
        turn = request.result(seconds)
        self._waiting.request = None
        return turn

    @property
    def _request(self) -> Future[int] | None:
        """Return the request of this thread that waits for its turn, or None."""
        return getattr(self._waiting, "request", None)

    def _requested(self) -> Future[int]:
        """Return the future of a locked file. It is done if no other process has the turn."""
        request: Future[int] = Future()
        turn = os.open(self._directory, os.O_RDONLY)
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            request.set_result(turn)
        except BlockingIOError:
            threading.Thread(target=_wait_for_turn, args=(turn, request), daemon=True).start()
        return request

    def close(self) -> None:
        """Give up the place of this thread, if it waits."""
        if request := self._request:
            request.add_done_callback(lambda given_up: end_turn(given_up.result()))
        self._waiting.request = None


def _wait_for_turn(turn: int, request: Future[int]) -> None:
    fcntl.flock(turn, fcntl.LOCK_EX)
    request.set_result(turn)


def end_turn(turn: int) -> None:
    """Let the next process have its turn."""
    fcntl.flock(turn, fcntl.LOCK_UN)  # a process forked in the meantime has the file open, too
    os.close(turn)


class SQLite:
    """The store's file. It has the interface `Database`."""

    is_shared: Final = False

    def __init__(self, file: Path) -> None:
        """Nothing is opened before the first use."""
        self.name = str(file)
        self._campaigns = file.parents[1]
        self._directory = file.parent
        self._turns = Turns(self._directory)
        self._owner: int | None = None  # file descriptor with the lock of `claim`
        self._engine = create_engine(f"sqlite:///{file}", connect_args={"timeout": _TIMEOUT})

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """Open a transaction, and commit it at the end. Raises SQLAlchemyError, StorageError."""
        turn = self._turn()
        try:
            with self._engine.begin() as connection:
                connection.exec_driver_sql("BEGIN IMMEDIATE")  # one that has read could not wait for the lock
                yield connection
        finally:
            end_turn(turn)

    def _turn(self) -> int:
        """Wait for the turn to write. Raises StorageError."""
        with workdir.writing(self._directory):
            try:
                return self._turns.take(_TIMEOUT)
            except TimeoutError as error:
                raise StoreBusy(f"the store {self.name} is busy: other processes of pgduel write to it") from error

    def reading(self) -> AbstractContextManager[Connection]:
        """Open a connection for one query. Raises SQLAlchemyError."""
        return self._engine.connect()

    @contextmanager
    def in_turn(self) -> Iterator[Connection]:
        """Open a transaction, and commit it at the end. One campaign at a time has one.

        Raises SQLAlchemyError, StorageError.
        """
        turn = self._campaigns / "next"
        with workdir.writing(turn), workdir.locked(turn), self.begin() as connection:
            yield connection

    def insert(self, table: Table) -> Insert:
        """Return the statement that inserts into a table."""
        return insert(table)

    def locking(self, _table: Table) -> tuple[Executable, ...]:
        """Return no statement: each insertion locks the file, before it reads."""
        return ()

    def prepare(self) -> None:
        """Create the tables of a new store, or migrate an older one. Raises StoreError for a newer one."""
        version = self._version()
        if version is None:
            self._create()
            return
        require_readable(version, self.name)
        if version < VERSION:
            try:
                self._migrate()
            except OperationalError as error:
                if self._version() != VERSION:  # otherwise another process was faster
                    raise self._refused(error) from error

    def _refused(self, error: OperationalError) -> StoreError:
        """Return the error of a migration. That an older pgduel uses the store lasts as long as its campaign."""
        converted = self.error(error)
        return StoreError(str(converted)) if isinstance(converted, StoreBusy) else converted

    def _version(self) -> int | None:
        with self._engine.connect() as connection:
            return _version(connection)

    @contextmanager
    def _autocommit(self) -> Iterator[Connection]:
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            yield connection

    def _create(self) -> None:
        with self._autocommit() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")  # stored in the file
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            create_tables(connection)  # another process may have created them
            _commit(connection)

    def _migrate(self) -> None:
        """Migrate a store while no other process has it open, because an older pgduel needs the old tables."""
        self._engine.dispose()  # its connections would count as those of another process
        with self._autocommit() as connection:
            connection.detach()  # so that its lock ends with it
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {_LOCK_TIMEOUT}")
            connection.exec_driver_sql("PRAGMA locking_mode = EXCLUSIVE")
            connection.exec_driver_sql("BEGIN EXCLUSIVE")
            migrate(connection, _version(connection) or 0)
            _commit(connection)

    def vacuum(self, *_tables: Table) -> None:
        """Return the space of deleted rows to the disk."""
        with self._autocommit() as connection:
            connection.exec_driver_sql("VACUUM")

    def size(self) -> int:
        """Return 0: the tables are in a file of the campaign's directory."""
        return 0

    def claim(self, *_names: str) -> None:
        """Be the only process that runs this campaign, until `close`. Raises StorageError.

        Names of continuous campaigns have locks of their own. This lock is one of POSIX: workers do not inherit it, so
        a campaign that was killed can be resumed before they have noticed it.
        """
        if self._owner is None:
            with workdir.writing(self._directory):
                self._owner = os.open(self._directory / _OWNER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(self._owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StoreError(f"campaign {self._directory.name} runs already; stop it first") from error

    def error(self, error: SQLAlchemyError) -> StoreError:
        """Return the error of a store for one of SQLAlchemy."""
        name, reason = getattr(error.__cause__, "sqlite_errorname", ""), first_line(str(error.__cause__ or error))
        if name.startswith(_BUSY):
            return StoreBusy(f"the store {self.name} is busy: another process uses it ({reason}); end that")
        if name.startswith(_FULL):
            return StoreFull(f"the store {self.name} cannot be used: {reason}; make room there")
        return StoreError(f"the store {self.name} cannot be used: {reason}{_ADVICE.get(name, '')}")

    def close(self) -> None:
        """Close the connections."""
        self._turns.close()
        self._engine.dispose()
        if self._owner is not None:
            os.close(self._owner)
            self._owner = None


def _version(connection: Connection) -> int | None:
    """Return the version of a store, or None if it has no tables."""
    if not connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar():
        return None
    return int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())


def _commit(connection: Connection) -> None:
    connection.exec_driver_sql(f"PRAGMA user_version = {VERSION}")
    connection.exec_driver_sql("COMMIT")
