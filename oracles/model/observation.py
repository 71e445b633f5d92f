"""Observation: all that one arm did for one step, and, for a whole case, what it left behind."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from oracles.model.mode import Mode


class Outcome(StrEnum):
    """How a step ended, by SQLSTATE and channel, never by message text."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"  # statement_timeout, or no answer within the client's limit
    LOST = "lost"  # the connection went away during this step
    SKIPPED = "skipped"  # not run: the connection was lost before, or the arm lacks what the run is about


@dataclass(frozen=True, slots=True)
class Message:
    """A notice, warning or error as the client got it."""

    severity: str  # never translated: ERROR, WARNING, NOTICE, ...
    sqlstate: str
    text: str
    routine: str = field(default="", compare=False)  # the C function that raised it, which patches may rename


@dataclass(frozen=True, slots=True)
class Column:
    """Name and type of a result column; `type` is the type's OID, or its name where a user made it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Observation:
    """What one arm did for one step. `rows` are DataRow (or CopyData) payloads, as bytes, in arrival order."""

    outcome: Outcome
    sqlstate: str = ""
    tags: tuple[str, ...] = ()  # command tags, one for each completed command of the step
    columns: tuple[Column, ...] = ()
    rows: tuple[bytes, ...] = ()
    messages: tuple[Message, ...] = ()
    plan: Mapping[str, Any] | None = None  # EXPLAIN (FORMAT JSON), where the run explains or plans (the quickest time)
    transaction: str = ""  # the server's status after the step: I idle, T in a transaction, E failed; "" unknown


@dataclass(frozen=True, slots=True)
class Remote:
    """What the server logged of a session that the case's own opened through a foreign server leading back."""

    session: int  # 1 for the first that said anything
    after: int  # so many lines of CaseObservation.log came before
    text: str


@dataclass(frozen=True, slots=True)
class Residue:
    """What was left when the case had ended: transaction, cursors and prepared statements closed, session idle."""

    temp_files: tuple[str, ...] = ()
    pins: int = 0  # buffers of the case's database pinned, per pg_buffercache
    locks: tuple[str, ...] = ()
    cursors: tuple[str, ...] = ()
    prepared: tuple[str, ...] = ()
    remote: tuple[str, ...] = ()  # sessions behind foreign servers that are not idle, or of which one would do


@dataclass(frozen=True, slots=True)
class Resources:
    """What the backend held after one repetition of the case."""

    open_files: int
    shared_memory: int  # mappings of shared-memory segments
    contexts: Mapping[str, tuple[int, int]]  # memory context name -> (how many, bytes used in all of them)


@dataclass(frozen=True, slots=True)
class CaseObservation:
    """What one arm did for a whole case: an Observation for each of `case.all_steps`, and what came after."""

    arm: str
    steps: tuple[Observation, ...]
    digests: tuple[tuple[str, str], ...] = ()  # (table or view, row count and hash of all rows), (sequence, value)
    residue: Residue | None = None  # None: could not be looked at (connection lost)
    resources: tuple[Resources, ...] = ()  # one for each repetition, where the run repeats
    log: tuple[str, ...] = ()  # the server's log lines about this backend
    remote: tuple[Remote, ...] = ()  # and those about sessions that it opened through foreign servers
    hang: tuple[str, ...] = ()  # waits and stacks, where a run with `patience` was not answered in time
    crash: str | None = None  # signal, assertion, PANIC or sanitizer report, with its backtrace
    reach: Mapping[str, int] = field(default_factory=dict)  # counters read inside the server
    lacking: tuple[str, ...] = ()  # settings of optional modes that the arm does not know: it ran without them, or not
    digested: bool = True  # False: statement_timeout ended the reading of what `digests` tells


@dataclass(frozen=True, slots=True)
class Run:
    """One execution that an oracle asks for: a case on an arm. Equal runs are executed once."""

    arm: str
    modes: tuple[Mode, ...]
    repeats: int = 1
    explain: bool = False  # QUERY steps run as EXPLAIN (ANALYZE, FORMAT JSON) instead
    plannings: int = 0  # QUERY steps are planned so many times, and not run: EXPLAIN (VERBOSE, FORMAT JSON)
    instead: tuple[tuple[int, str], ...] = ()  # what steps at these positions of `case.all_steps` run instead
    patience: int = 0  # the client waits so many times the statement timeout, which the server does not enforce
    sabotage: str = ""  # an action of the sabotage module (canaries and injected bugs only)
