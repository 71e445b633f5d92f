"""One run: a case played on one arm in a session of its own, from CREATE SCHEMA to the last line of the log."""

import errno
import os
import re
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from fuzz.errors import ServerError
from fuzz.execution import messages, residue
from fuzz.execution.exchanges import Exchange
from fuzz.execution.hanging import hang_report
from fuzz.execution.observing import Reader
from fuzz.execution.serverlog import Entry, about, crash_of, deaths, remote
from fuzz.execution.session import frames_of, lacking, startup_parameters
from fuzz.execution.wire import Reply, Wire
from fuzz.execution.worker_database import WorkerDatabase
from fuzz.servers.processes import cpu_seconds_of
from fuzz.sources.scripts.roles import role_made
from oracles.framework.comparison import DISK_FULL
from oracles.model.case import Case
from oracles.model.observation import CaseObservation, Message, Outcome, Run

ATTEMPTS: Final = 3  # somebody else's crash ends our session too; then the run starts anew

_CREATE = messages.query("CREATE SCHEMA duel")
_CLEAR = messages.query("SELECT pgduel_tools.clear()")
_BYSTANDER: Final = ("57P01", "57P02", "57P03")  # the session was ended, or not let in, for no fault of its own
_PANIC: Final = re.compile(rf"^PANIC: .*: {os.strerror(errno.ENOSPC)}$", re.MULTILINE)
_DEATH_LOOKS, _EXIT_LOOKS, _PAUSE = 100, 1000, 0.02
_EXIT_CPU = 2.0  # seconds of its own time in which a session that is told to end does so, however busy the machine is


class Lost(Exception):
    """The session is gone, or had to be ended: what was observed until then stands."""


class CaseRun:
    """A run under way; `exchange` drives it."""

    def __init__(self, place: WorkerDatabase, case: Case, run: Run, statement_timeout_ms: int) -> None:
        self._place = place
        self._case = case
        self._run = run
        self._lacking = lacking(run, place.settings)
        self._parameters = startup_parameters(run, place.database, statement_timeout_ms, self._lacking)
        self._frames = frames_of(case, run)
        self._drop_roles = _drop_roles(case)

    def _forget(self) -> None:
        self._reader = Reader(self._case, self._run, self._frames, self._place.directories)
        self._steps: list[Reply] = []
        self._before = 0
        self._seen = CaseObservation(self._run.arm, (), lacking=self._lacking)
        self._silent = False
        self._cleared = False

    def exchange(self) -> Exchange[CaseObservation]:
        """CaseRun the case until nothing disturbed it. Raises ServerError where the server cannot be had."""
        for attempts_left in reversed(range(ATTEMPTS)):
            self._forget()
            try:
                disturbed = yield from self._attempt()
            except ServerError:
                if not attempts_left:
                    raise
                continue
            if not disturbed:
                break
        return self._seen

    def _attempt(self) -> Exchange[bool]:
        """CaseRun the case once; tell whether something outside of it disturbed it. Raises ServerError."""
        yield from self._place.make_ready()
        self._place.soiled = True
        self._place.log.mark()
        session = self._place.connect(self._parameters)
        try:
            yield from self._perform(session)
            yield from self._leave(session)
        except Lost:
            disturbed = yield from self._explain_loss(session)
            self._require_room()
            return disturbed
        finally:
            session.close()
        self._require_room()
        self._place.soiled = self._seen.crash is not None or not self._cleared
        return False

    def _perform(self, session: Wire) -> Exchange[None]:
        """CaseRun all repetitions; what is kept of each but its resources is overwritten by the next."""
        case = b"".join(frames.data for frames in self._frames)
        count = sum(frames.replies for frames in self._frames)
        for _ in range(self._run.repeats):
            self._seen = replace(self._seen, steps=())
            session.send(self._drop_roles + _CREATE, 1 + bool(self._drop_roles))  # where it was cut short before
            self._before = session.expected  # replies that precede those of the case
            session.send(case, count)
            yield from self._settled(session, playing=True)
            replies = session.take_replies()
            self._require(replies[self._before - 1], "make a case's schema")
            self._steps = replies[self._before :]
            yield from self._tidy_up(session, replies[-1].status)
            yield from self._look_inside(session)

    def _settled(self, session: Wire, *, playing: bool = False) -> Exchange[None]:
        """Wait for all replies. Raises Lost; where the case was playing, keeps its replies so far."""
        yield session
        if not session.settled:
            self._silent = True
            if self._run.patience:
                self._seen = replace(self._seen, hang=(yield from hang_report(self._place, session.pid)))
            yield from self._end(session)
        if session.lost:
            if playing:
                self._steps = session.replies[self._before :]
            raise Lost

    def _end(self, session: Wire) -> Exchange[None]:
        """End a session that ignored statement_timeout: politely, then so that it shows where it hangs, then surely."""
        for number in (signal.SIGTERM, signal.SIGABRT, signal.SIGKILL) if session.pid else ():
            with suppress(ProcessLookupError):
                os.kill(session.pid, number)
            enough = cpu_seconds_of(session.pid) + _EXIT_CPU
            for _ in range(_EXIT_LOOKS):
                session.pump_in()
                if session.lost:
                    return
                if cpu_seconds_of(session.pid) > enough:
                    break
                yield _PAUSE
        session.close()

    def _tidy_up(self, session: Wire, status: str) -> Exchange[None]:
        """End what the case left open, and look at what stays nevertheless."""
        rollback = b"" if status == "I" else messages.query("ROLLBACK")
        session.send(rollback + messages.query(residue.TIDY) + messages.query(residue.LEFT_INSIDE), 2 + bool(rollback))
        yield from self._settled(session)
        answer = session.take_replies()[-1]
        self._require(answer, "tell what a session holds")
        inside = residue.pairs(answer)
        left = yield from residue.residue(self._place, session.pid, inside)
        self._seen = replace(self._seen, residue=left)

    def _look_inside(self, session: Wire) -> Exchange[None]:
        """Ask the session itself, in one go, remove what the case made, and see what the session holds then."""
        asked = {
            "counters": messages.query(residue.COUNTERS) if self._run.explain else b"",
            "digests": messages.query(residue.DIGESTS),
            "types": self._types_query(),
            "roles": self._drop_roles,
            "clear": _CLEAR,
            "contexts": messages.query(residue.CONTEXTS) if self._run.repeats > 1 else b"",
        }
        asked = {name: frames for name, frames in asked.items() if frames}
        session.send(b"".join(asked.values()), len(asked))
        yield from self._settled(session)
        answers = dict(zip(asked, session.take_replies(), strict=True))
        failed = any(_complaint(answers[name]) for name in ("roles", "clear") if name in answers)
        self._cleared = not failed and residue.table(answers["clear"]) == [["f"]]  # nothing left elsewhere
        if "types" in answers:
            self._require(answers["types"], "name types")
            self._reader.type_names = {int(oid): name for oid, name in residue.pairs(answers["types"])}
        if "contexts" in answers:
            self._require(answers["contexts"], "tell its memory contexts")
            held = residue.resources(session.pid, answers["contexts"])
            self._seen = replace(self._seen, resources=(*self._seen.resources, held))
        self._seen = replace(
            self._seen,
            steps=self._reader.observations(self._steps),
            digests=residue.pairs(answers["digests"]),
            digested=not _complaint(answers["digests"]),
            reach=residue.counters(answers["counters"]) if "counters" in answers else {},
        )

    def _require(self, reply: Reply, what: str) -> None:
        if complaint := _complaint(reply):
            if complaint.sqlstate == DISK_FULL:
                raise self._place.no_room()
            raise ServerError(f"arm {self._place.arm} cannot {what}: {complaint.text}")

    def _types_query(self) -> bytes:
        oids = ", ".join(map(str, self._reader.unknown_types(self._steps)))
        return messages.query(f"SELECT oid, typname FROM pg_type WHERE oid IN ({oids})") if oids else b""

    def _leave(self, session: Wire) -> Exchange[None]:
        """Say goodbye, and wait until the backend is gone: it may still crash, or complain, on its way out."""
        session.send(messages.TERMINATE, 1)
        yield session
        entries = self._place.log.entries()
        self._keep_log(session.pid, entries)

    def _keep_log(self, pid: int, entries: Sequence[Entry]) -> None:
        crash = crash_of(pid, entries, self._place.executable)
        self._seen = replace(self._seen, log=about(pid, entries), remote=remote(pid, entries), crash=crash)

    def _explain_loss(self, session: Wire) -> Exchange[bool]:
        """Complete the observation of a session that was lost; tell whether that was no doing of the case."""
        partial = session.partial
        words = [messages.message_of(data) for kind, data in partial.others if kind == messages.ERROR_RESPONSE]
        fatal = words[-1].sqlstate if words and words[-1].severity == "FATAL" else ""
        if not fatal:
            yield from self._await_death()
        if not session.pid and fatal and fatal not in _BYSTANDER:
            raise ServerError(f"arm {self._place.arm} refuses the session: {words[-1].text}")
        entries = self._place.log.entries()
        cut = Outcome.TIMEOUT if self._silent else Outcome.LOST
        steps = self._seen.steps or self._reader.observations(self._steps, partial, cut)
        self._seen = replace(self._seen, steps=steps, residue=None, digests=())
        self._keep_log(session.pid, entries)
        return self._seen.crash is None and not self._silent and (not fatal or fatal in _BYSTANDER)

    def _require_room(self) -> None:
        """Raise ServerError if the disk is full, unless it was the case that filled it, and emptied it by now."""
        refused = any(step.sqlstate == DISK_FULL for step in self._seen.steps)
        if (refused and self._place.is_full()) or _PANIC.search(self._seen.crash or ""):
            raise self._place.no_room()

    def _await_death(self) -> Exchange[None]:
        """Wait until the postmaster has told whose death ended the session, unless it is gone itself."""
        for _ in range(_DEATH_LOOKS):
            if deaths(self._place.log.entries()).lines or not self._place.cluster.alive():
                return
            yield _PAUSE


def _drop_roles(case: Case) -> bytes:
    """Return what removes the roles that the case makes, which belong to no database; nothing if it makes none."""
    made = sorted({role for step in case.all_steps if (role := role_made(step.sql))})
    return messages.query(f"SELECT pgduel_tools.drop_roles('{{{','.join(made)}}}')") if made else b""


def _complaint(reply: Reply) -> Message | None:
    """Return the error that a reply consists of, if it does."""
    errors = (payload for kind, payload in reply.others if kind == messages.ERROR_RESPONSE)
    return next(map(messages.message_of, errors), None)
