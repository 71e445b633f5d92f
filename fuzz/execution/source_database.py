"""Source database: the reference arm as the context of a source, with a database of the source's own."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import psycopg

from fuzz.errors import CaseError, ServerError
from fuzz.execution.executor import Executor
from fuzz.execution.session import SEARCH_PATH
from fuzz.execution.worker_database import WorkerDatabase
from fuzz.servers.arm import Arm
from fuzz.sources.context import Ended, PatchedTree, UserInput
from oracles.model.case import Case, Step
from oracles.model.observation import Observation, Outcome, Run


class SourceDatabase:
    """The context of a source. Each use gets a new database."""

    def __init__(self, arm: Arm, worker: str, given: UserInput, others: Sequence[Arm] = ()) -> None:
        """Store the reference, the user's input and the other arms.

        `worker` (letters and digits) distinguishes databases on one arm.
        """
        self.given = given
        self._arm = arm
        self._others = others
        self._executors: dict[str, Executor] = {}  # by suspect
        self._worker = f"source_{worker}"
        self._worker_db: WorkerDatabase | None = None

    @property
    def tree(self) -> str:
        """Return the git tree of the arm's base."""
        return self._arm.trees[0]

    @property
    def patched_trees(self) -> Mapping[str, PatchedTree]:
        """Return the trees of all arms but the reference, or of the only arm, by name."""
        if not self._others:
            return {self._arm.name: PatchedTree(self._arm.trees[-1], self._arm.trees[:1])}
        own = self._arm.trees[-1]
        return {arm.name: PatchedTree(arm.trees[-1], (arm.trees[0], own)) for arm in self._others}

    def tried(self, case: Case, suspect: str) -> Sequence[Ended]:
        """Execute a case once on the reference and on another arm; return how each step ended. Raises ServerError."""
        arms = [self._arm, *(arm for arm in self._others if arm.name == suspect)]
        if len(arms) == 1:  # it ends each step as it does
            return [Ended("", "")] * len(case.all_steps)
        if suspect not in self._executors:
            self._executors[suspect] = Executor(arms, f"{self._worker}_tried")
        runs = [Run(arm.name, ()) for arm in arms]
        observed = self._executors[suspect].observe(case, runs)
        first, last = observed[runs[0]].steps, observed[runs[-1]].steps
        return [Ended(_sqlstate(ours), _sqlstate(theirs)) for ours, theirs in zip(first, last, strict=True)]

    @cached_property
    def extensions(self) -> frozenset[str]:
        """Return the names of the available extensions. Raises ServerError."""
        with self.session(()) as connection:
            return frozenset(name for (name,) in connection.execute("SELECT name FROM pg_available_extensions"))

    @contextmanager
    def session(self, scene: Sequence[Step]) -> Iterator[psycopg.Connection[Any]]:
        """Enter a session in which the scene has been executed.

        Raises ServerError, also if the server is lost meanwhile.
        """
        if self._worker_db is None:
            self._worker_db = WorkerDatabase(self._arm, self._worker)
        else:
            self._worker_db.renew()
        try:
            with self._connected(self._worker_db) as connection:
                for step in (Step("CREATE SCHEMA duel"), *scene):
                    _execute(connection, step)
                yield connection
        except psycopg.OperationalError as error:
            raise ServerError(f"arm {self._arm.name} was lost while a source used it: {error}") from error

    def _connected(self, worker_db: WorkerDatabase) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host=str(worker_db.cluster.socket_dir),
            port=worker_db.cluster.port,
            user="postgres",
            dbname=worker_db.database,
            options=f"-c search_path={SEARCH_PATH}",
            autocommit=True,
        )

    def close(self) -> None:
        """Drop the databases."""
        for executor in self._executors.values():
            executor.close()
        self._executors.clear()
        if self._worker_db is not None:
            self._worker_db.close()
        self._worker_db = None


def _sqlstate(seen: Observation) -> str | None:
    """Return the SQLSTATE of a step, "" for success; None if it did not end."""
    if seen.outcome is Outcome.ERROR:
        return seen.sqlstate
    return "" if seen.outcome is Outcome.OK else None


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
            raise CaseError(f"cannot execute the scene of a source: {error}") from error
