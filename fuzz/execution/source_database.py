"""Source database: the reference arm as the context of a source, with a database of the source's own."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, Self

import psycopg
from psycopg.abc import Params
from psycopg.sql import Composable

from fuzz.errors import CaseError, ServerError, first_line
from fuzz.execution.exchanges import run_exchanges
from fuzz.execution.session import SEARCH_PATH
from fuzz.execution.worker_database import RECOVERY_SECONDS, WorkerDatabase
from fuzz.servers.arm import Arm
from fuzz.servers.sessions import session
from fuzz.sources.source import LostServer, UserInput
from oracles.model.case import Step


class SourceDatabase:
    """The context of a source. Each use gets a new database."""

    def __init__(self, arm: Arm, worker: str, given: UserInput, arms: Sequence[Arm] = ()) -> None:
        """Store the arm and the user's input. `worker` (letters and digits) distinguishes databases on one arm.

        `arms` are those whose patches' own tests sources may use. If there are some, `arm` is the first of them.
        """
        self.given = given
        self._arm = arm
        self._worker = f"source_{worker}"
        self._worker_db: WorkerDatabase | None = None
        self._with_tests = bool(arms)
        self._others = tuple(SourceDatabase(other, worker, given) for other in arms[1:])

    @property
    def arms(self) -> "Sequence[SourceDatabase]":
        """Return the contexts of all arms whose patches' own tests are wanted."""
        return (self, *self._others) if self._with_tests else ()

    @property
    def name(self) -> str:
        """Return the name of the arm."""
        return self._arm.name

    @property
    def trees(self) -> tuple[str, ...]:
        """Return the git trees after each prefix of the arm's series."""
        return self._arm.trees

    @cached_property
    def extensions(self) -> frozenset[str]:
        """Return the names of the available extensions. Raises ServerError."""
        with self.session(()) as connection:
            return frozenset(name for (name,) in connection.execute("SELECT name FROM pg_available_extensions"))

    @contextmanager
    def session(self, scene: Sequence[Step]) -> Iterator[psycopg.Connection[Any]]:
        """Enter a session in which the scene has been executed.

        Raises ServerError. If the server is lost meanwhile, waits until it is there again, and raises LostServer.
        """
        worker_db = self._new_database()
        received: list[str] = []
        is_lost = False
        try:
            with session(self._address(worker_db), autocommit=True) as connection:
                try:
                    for step in (Step("CREATE SCHEMA duel"), *scene):
                        _execute(connection, step)
                    connection.cursor_factory = _recording(received)
                    yield connection
                except psycopg.OperationalError:
                    is_lost = connection.broken  # once closed, it does not count as broken
                    raise
        except psycopg.OperationalError as error:
            words = f"arm {self._arm.name} was lost while a source used it: {first_line(str(error))}"
            if not is_lost:
                raise ServerError(words) from error
            _await_server(worker_db)
            raise LostServer(words, scene, [Step(sql, may_fail=True) for sql in received]) from error

    def _new_database(self) -> WorkerDatabase:
        if self._worker_db is None:
            self._worker_db = WorkerDatabase(self._arm, self._worker)
        else:
            self._worker_db.renew()
        return self._worker_db

    def _address(self, worker_db: WorkerDatabase) -> dict[str, Any]:
        options = f"-c search_path={SEARCH_PATH}"
        return worker_db.cluster.connect_kwargs | {"dbname": worker_db.database, "options": options}

    def close(self) -> None:
        """Drop the database, and those on other arms."""
        for other in self._others:
            other.close()
        if self._worker_db is not None:
            self._worker_db.close()
        self._worker_db = None


def _await_server(worker_db: WorkerDatabase) -> None:
    """Wait until a lost server makes databases again. Raises ServerError.

    The first time, it may answer before it notices that a process of it has died.
    """
    with suppress(ServerError):
        run_exchanges([worker_db.recover()], RECOVERY_SECONDS)
        worker_db.renew()
        return
    run_exchanges([worker_db.recover()], RECOVERY_SECONDS)
    worker_db.renew()


def _recording(received: list[str]) -> type[psycopg.Cursor[Any]]:
    """Return a class of cursors that note statements. Those with parameters are the sources' own queries."""

    class Recording(psycopg.Cursor[Any]):
        def execute(self, query: Any, params: Params | None = None, **options: Any) -> Self:
            if params is None:
                text = query.as_string(self) if isinstance(query, Composable) else query
                received.append(text.decode() if isinstance(text, bytes) else str(text))
            return super().execute(query, params, **options)

    return Recording


def _execute(connection: psycopg.Connection[Any], step: Step) -> None:
    """Execute a step of a scene. Raises CaseError if it fails unexpectedly."""
    try:
        if step.copy_data is None:
            connection.execute(step.sql.encode())
        else:
            with connection.cursor().copy(step.sql.encode()) as copy:
                copy.write(step.copy_data)
    except psycopg.Error as error:
        # Also some statements' errors are OperationalErrors, such as "object not in prerequisite state".
        if connection.broken:
            raise
        if not step.may_fail:
            raise CaseError(f"cannot execute the scene of a source: {first_line(str(error))}") from error
