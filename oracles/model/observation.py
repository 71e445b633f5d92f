"""Observations of one arm: the results of each step, and the remains of the whole case."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from oracles.model.mode import Mode


class Outcome(StrEnum):
    """Ways in which a step ends, according to SQLSTATE and connection, never to message text."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"  # statement_timeout, or no reply within the client's limit
    TOO_LARGE = "too large"  # it succeeded, but the client does not keep so many rows
    LOST = "lost"  # the connection was lost during this step
    SKIPPED = "skipped"  # not executed: the connection was lost before, or the arm lacks the settings of the run


@dataclass(frozen=True, slots=True)
class Message:
    """A notice, warning or error, as the client received it."""

    severity: str  # untranslated: ERROR, WARNING, NOTICE, ...
    sqlstate: str
    text: str
    # the C function that raised it; not compared, because patches may rename functions
    routine: str = field(default="", compare=False)
    fields: tuple[tuple[str, str], ...] = ()  # names and values of the other fields: objects, positions


UNKNOWN_TYPE: Final = ""  # of user-defined types whose names could not be read, because the session was lost


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A result column, as RowDescription has it.

    `type` is the type's OID, or the name of a user-defined type, or UNKNOWN_TYPE. The number of the attribute is 0
    unless the column is one of a relation.
    """

    name: str
    type: str
    length: int = -1  # bytes of a value; -1: they vary
    modifier: int = -1  # typmod, such as the length of varchar(9); -1: none
    attribute: int = 0
    binary: bool = False  # the format of values


@dataclass(frozen=True, slots=True)
class Observation:
    """The results of one step on one arm. `rows` are DataRow or CopyData payloads, as bytes, in order of arrival."""

    outcome: Outcome
    sqlstate: str = ""
    tags: tuple[str, ...] = ()  # command tags, one for each command of the step that completed
    columns: tuple[ResultColumn, ...] = ()  # of the last result
    rows: tuple[bytes, ...] = ()
    messages: tuple[Message, ...] = ()
    earlier_columns: tuple[tuple[ResultColumn, ...], ...] = ()  # of the results before the last one
    protocol: tuple[str, ...] = ()  # formats of COPY, notifications and reported settings, as text
    # output of EXPLAIN (FORMAT JSON) if the run explains or plans; of repetitions the one with the least CPU time. If
    # the run canceled an explained query, it has the delay alone (oracles/explain/nodes.py)
    plan: Mapping[str, Any] | None = None
    # kB that a COPY FROM (the largest measured value) or a change added to all contexts, in explained runs
    memory: float = 0.0
    transaction: str = ""  # transaction status after the step: I idle, T in a transaction, E failed; "" unknown
    # what the server made of `rows` as parameters, in text format; None: they were not sent back
    read_back: "Observation | None" = None

    @property
    def has_ended(self) -> bool:
        """Return whether the step succeeded, or failed by itself: without a timeout or the loss of its connection."""
        return self.outcome in (Outcome.OK, Outcome.ERROR)


@dataclass(frozen=True, slots=True)
class Remote:
    """A server log line of a session that the case's session opened, through a foreign server that leads back."""

    session: int  # number of the session, from 1, in the order of their first log lines
    after: int  # number of lines of CaseObservation.log that precede it
    text: str


@dataclass(frozen=True, slots=True)
class Residue:
    """Remains of a case in its idle session, after transaction, cursors and prepared statements were closed."""

    temp_files: tuple[str, ...] = ()
    pins: int = 0  # pinned buffers of the case's database, according to pg_buffercache
    locks: tuple[str, ...] = ()
    cursors: tuple[str, ...] = ()
    prepared: tuple[str, ...] = ()
    remote: tuple[str, ...] = ()  # sessions behind foreign servers that are superfluous or not idle


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources that the backend holds after one repetition of the case."""

    open_files: int
    shared_memory: int  # mapped shared-memory segments
    # name of the memory context -> (number of contexts, bytes used in all of them)
    contexts: Mapping[str, tuple[int, int]]
    called: frozenset[str] = frozenset()  # functions of the case that this repetition called, except in C or SQL


@dataclass(frozen=True, slots=True)
class CaseObservation:
    """The observations of one run: one for each of `case.all_steps`, and the remains of the case."""

    arm: str
    steps: tuple[Observation, ...]
    digests: tuple[tuple[str, str], ...] = ()  # (table or view, row count and hash of all rows), (sequence, value)
    residue: Residue | None = None  # None: unknown, because the connection was lost
    resources: tuple[Resources, ...] = ()  # one for each repetition if the run repeats the case
    log: tuple[str, ...] = ()  # the server's log lines about this backend
    remote: tuple[Remote, ...] = ()  # log lines of the sessions that it opened through foreign servers
    hang: tuple[str, ...] = ()  # wait events and stacks, if a run with `timeout_factor` reached its time limit
    crash: str | None = None  # signal, assertion, PANIC or sanitizer report, with its backtrace
    reach: Mapping[str, int] = field(default_factory=dict)  # counters of executed branches, read inside the server
    # settings of optional modes that the arm lacks, or that the run needs; it ran without them, or skipped the run
    lacking: tuple[str, ...] = ()
    sizes: tuple[tuple[str, str], ...] = ()  # (relkind, bytes) of all tables and indexes after a planned run
    digested: bool = True  # False: the query for `digests` failed
    # errors of the statements with which pgduel ends a case: rollback, resets, query for `digests`, DROP
    closing: tuple[Message, ...] = ()
    earlier: tuple[tuple[Observation, ...], ...] = ()  # steps of each repetition of the case before the last one
    disturbed: bool = False  # the death of another process ended the session, in the last attempt too


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a case on an arm, requested by an oracle. Equal runs are executed once."""

    arm: str
    modes: tuple[Mode, ...]
    repeats: int = 1
    explain: bool = False  # QUERY steps run as EXPLAIN (ANALYZE, FORMAT JSON) instead
    executions: int = 1  # explained QUERY steps are executed so many times
    plannings: int = 0  # QUERY steps are planned so many times but not executed: EXPLAIN (VERBOSE, FORMAT JSON)
    instead: tuple[tuple[int, str], ...] = ()  # replacement statements by position in `case.all_steps`
    needs: tuple[str, ...] = ()  # settings without which an arm skips the run, because replacements set them
    # the client waits so many statement timeouts, which the server does not enforce; 0: the server enforces one
    timeout_factor: int = 0
    repetition: int = 0  # number of a repetition, because equal runs are executed once
    fault: str = ""  # an action of the fault injector, for canaries and injected bugs only
