"""Trial of a script on all arms: the statements that an arm refuses because it lacks a feature of a patch.

A regression test of a patch uses its new settings, functions, options or syntax. A server without the patch
refuses such statements, which is no fault. No text shows whether it does so for this reason, or because the test is
about the error. So all arms execute the script, statement by statement. One lacks the feature of a statement if it
refuses the statement's syntax, a name or an option in it, while the arm with the patch ends otherwise: it accepts the
statement, or has another message, for example a hint with the names of all options.

Such a statement counts as not executed on any arm, so its effect on the arm with the patch is undone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import psycopg
from pglast import ast
from psycopg.pq import TransactionStatus

from oracles.model.case import Case, Kind, Step
from oracles.model.sqlstate import QUERY_CANCELED, SYNTAX_ERROR, UNDEFINED_FUNCTION
from oracles.sql.building import trees

LACKING: Final = "lacking_elsewhere"  # tag of steps in place of statements whose feature an arm lacks
# SQLSTATEs of a name, an option or a syntax that a server does not have (src/backend/utils/errcodes.txt): feature not
# supported, invalid value of a parameter, undefined column, object and table, and unknown option of a foreign server.
_REFUSED: Final = frozenset({"0A000", "22023", SYNTAX_ERROR, "42703", "42704", UNDEFINED_FUNCTION, "42P01", "HV00D"})
_SECONDS: Final = 5  # for a statement; PostgreSQL's tests are far quicker
_SAVEPOINT: Final = "pgduel_trial"


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of a trial: positions of the statements whose feature an arm lacks, among the first `known` ones.

    The one after these reached the time limit, so nothing is known of it and of all later ones.
    """

    lacking: frozenset[int]
    known: int

    def applied(self, case: Case) -> Case:
        """Return the case of the known steps, with an empty query in place of each whose feature an arm lacks."""
        steps = [
            Step("SELECT", may_fail=True, tags=(LACKING,)) if position in self.lacking else step
            for position, step in enumerate(case.all_steps[: self.known])
        ]
        scene = len(case.scene)
        return replace(case, scene=tuple(steps[:scene]), steps=tuple(steps[scene:]))


@dataclass(frozen=True, slots=True)
class _End:
    """How a statement ended: SQLSTATE, "" for success, and the texts of its error."""

    sqlstate: str = ""
    texts: tuple[str | None, ...] = ()

    @property
    def is_refusal(self) -> bool:
        """Return whether the statement was refused because of a syntax, a name or an option in it."""
        return self.sqlstate in _REFUSED


def tried(own: psycopg.Connection[Any], others: Sequence[psycopg.Connection[Any]], steps: Sequence[Step]) -> Trial:
    """Execute the steps on all arms. `own` is a session of the arm with the patches, `others` those of all others.

    Raises psycopg.OperationalError if a server is lost.
    """
    lacking: set[int] = set()
    of_own, *of_others = [_Session(each) for each in (own, *others)]
    for position, step in enumerate(steps):
        ends: list[_End] = []
        for session in (*of_others, of_own):
            ends.append(session.execute(step, without_effect=any(end.is_refusal for end in ends)))
        *of_arms, expected = ends
        if any(end.sqlstate == QUERY_CANCELED for end in ends):
            return Trial(frozenset(lacking), position)
        is_lacking = any(end.is_refusal and end != expected for end in of_arms)
        if is_lacking:
            lacking.add(position)
        for session in (of_own, *of_others):
            session.conclude(undo=is_lacking)
    return Trial(frozenset(lacking), len(steps))


class _Session:
    """A session in which the last statement may be undone, if a transaction is open or was begun for it."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._begun = False  # a transaction for the last step alone
        self._saved = False

    def execute(self, step: Step, *, without_effect: bool = False) -> _End:
        """Execute a step and return how it ended. Raises psycopg.OperationalError if the server is lost.

        Without effect, it is undone in any case. Some statements are refused in the transaction that this needs.
        """
        if self._status is TransactionStatus.IDLE:
            self._run(f"SET statement_timeout = '{_SECONDS}s'")  # the script may have reset it
        may_save = not _is_transactional(step)
        self._saved = may_save and self._status is TransactionStatus.INTRANS
        self._begun = may_save and without_effect and self._status is TransactionStatus.IDLE
        if self._saved:
            self._run(f"SAVEPOINT {_SAVEPOINT}")
        if self._begun:
            self._run("BEGIN")
        try:
            self._send(step)
        except psycopg.Error as error:
            if self._connection.broken:
                raise
            found = error.diag
            texts = (found.message_primary, found.message_detail, found.message_hint, found.context)
            return _End(error.sqlstate or "", texts)
        return _End()

    def conclude(self, *, undo: bool) -> None:
        """Keep or undo the effects of the last step."""
        if self._begun:
            self._run("ROLLBACK")
            return
        if not self._saved or self._status is TransactionStatus.IDLE:
            return
        if undo:
            self._run(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
        if undo or self._status is TransactionStatus.INTRANS:
            self._run(f"RELEASE SAVEPOINT {_SAVEPOINT}")

    @property
    def _status(self) -> TransactionStatus:
        return self._connection.info.transaction_status

    def _run(self, sql: str) -> None:
        self._connection.execute(sql.encode(), prepare=False)

    def _send(self, step: Step) -> None:
        if step.kind is Kind.COPY_IN:
            with self._connection.cursor().copy(step.sql.encode()) as copy:
                copy.write(step.copy_data or b"")
        elif step.kind is Kind.COPY_OUT:
            with self._connection.cursor().copy(step.sql.encode()) as copy:
                for _ in copy:
                    pass
        else:
            self._run(step.sql)


def _is_transactional(step: Step) -> bool:
    """Return whether a statement begins or ends transactions or savepoints, or sets properties of a transaction."""
    statements = [each.stmt for each in trees(step.sql)]
    return any(
        isinstance(each, ast.TransactionStmt)
        or (isinstance(each, ast.VariableSetStmt) and str(each.name).startswith("TRANSACTION"))
        for each in statements
    )


def drop_roles(connection: psycopg.Connection[Any], roles: Sequence[str]) -> None:
    """Drop the roles of a script, which other databases have, too. Raises psycopg.OperationalError."""
    statements = [sql for role in roles for sql in (f"DROP OWNED BY {role} CASCADE", f"DROP ROLE {role}")]
    for sql in ("ROLLBACK", "DISCARD ALL", *statements):
        try:
            connection.execute(sql.encode(), prepare=False)
        except psycopg.Error:  # the script has not made the role, or has dropped it
            if connection.broken:
                raise
