"""One run: a case executed on one arm in its own session, from CREATE SCHEMA to the last log line of its backend.

If the session does not answer, the waits and stacks of its backend and parallel workers are recorded.
"""

import errno
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from fuzz.errors import ServerError
from fuzz.execution import messages, residue
from fuzz.execution.exchanges import Exchange
from fuzz.execution.observing import Reader
from fuzz.execution.serverlog import Entry, about, crash_of, deaths, remote, reports_of
from fuzz.execution.session import Frames, frames_of, lacking, reading_back, startup_parameters
from fuzz.execution.wire import Reply, Wire
from fuzz.execution.worker_database import WorkerDatabase
from fuzz.servers.account import server_account
from fuzz.servers.processes import cpu_seconds_of, runs_in
from fuzz.sources.scripts.roles import role_made
from oracles.model.case import Case
from oracles.model.observation import CaseObservation, Message, Outcome, Run
from oracles.model.sqlstate import DISK_FULL

# A crash in another session also ends ours; the run is then repeated. A session that ends by itself is not repeated.
ATTEMPTS: Final = 3

_CREATE = messages.query("CREATE SCHEMA duel")
_AGAIN = messages.query("RESET ROLE")  # to that of the session's start, after residue.TIDY
_CLEAR = messages.query("SELECT pgduel_tools.clear()")
_OUTSIDE_CAUSES: Final = ("57P01", "57P02", "57P03")  # the session was ended or refused for a reason outside of it
_STARTS: Final = "LOG:  starting PostgreSQL"
_PANIC: Final = re.compile(rf"^PANIC: .*: {os.strerror(errno.ENOSPC)}$", re.MULTILINE)
_DEATH_POLLS, _EXIT_POLLS, _PAUSE = 100, 1000, 0.02
# CPU seconds within which a signalled backend exits, independent of the machine's load
_EXIT_CPU = 2.0


class Lost(Exception):
    """Raised if the session is lost or had to be ended. Earlier observations remain valid."""


class CaseRun:
    """A run in progress, driven by `exchange`."""

    def __init__(
        self,
        worker_db: WorkerDatabase,
        case: Case,
        run: Run,
        statement_timeout_ms: int,
        parameters: Mapping[str, str],
    ) -> None:
        self._worker_db = worker_db
        self._case = case
        self._run = run
        self._lacking = lacking(run, worker_db.settings)
        own = startup_parameters(run, worker_db.database, statement_timeout_ms, self._lacking)
        self._parameters = own if run.explain or run.fault else {**own, **parameters}
        self._frames = frames_of(case, run)
        self._drop_roles = _drop_roles(case)

    def _reset(self) -> None:
        self._reader = Reader(self._case, self._run, self._frames, self._worker_db.directories)
        self._steps: list[Reply] = []
        self._before = 0
        self._seen = CaseObservation(self._run.arm, (), lacking=self._lacking)
        self._silent = False
        self._cleared = False
        self._schema_remains = False

    def exchange(self) -> Exchange[CaseObservation]:
        """Run the case until an attempt is undisturbed, and return what was observed.

        Raises ServerError if the server is unavailable.
        """
        for attempts_left in reversed(range(ATTEMPTS)):
            self._reset()
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
        """Run the case once, and return whether a cause outside of it disturbed the run. Raises ServerError."""
        yield from self._worker_db.make_ready()
        self._postmaster = self._worker_db.cluster.pid  # if it ends, another one may follow
        self._worker_db.needs_reset = True
        self._worker_db.log.mark()
        session = self._worker_db.connect(self._parameters)
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
        self._worker_db.needs_reset = self._seen.crash is not None or not self._cleared
        return False

    def _perform(self, session: Wire) -> Exchange[None]:
        """Run all repetitions, or those until the schema cannot be dropped. Digests and remains are the last one's."""
        for number in range(self._run.repeats):
            if self._schema_remains:
                return
            if number:
                self._keep_repetition()
            self._reader.type_names = None
            # Roles exist if an earlier run was cut off.
            before = [frames for frames in (_AGAIN if number else b"", self._drop_roles, _CREATE) if frames]
            session.send(b"".join(before), len(before))
            self._before = session.expected  # replies before those of the case
            yield from self._send_steps(session)
            replies = session.take_replies()
            self._require(replies[self._before - 1], "make a case's schema")
            self._steps = replies[self._before :]
            yield from self._tidy_up(session, replies[-1].status)
            yield from self._inspect_session(session)

    def _keep_repetition(self) -> None:
        """Keep the steps of a repetition, equal ones once."""
        steps, earlier = self._seen.steps, self._seen.earlier
        kept = earlier[0] if earlier and earlier[0] == steps else steps
        self._seen = replace(self._seen, steps=(), earlier=(*earlier, kept))

    def _send_steps(self, session: Wire) -> Exchange[None]:
        """Send all steps at once, or up to a query whose rows are to be sent back, and await the replies."""
        batch: list[Frames] = []
        for frames in self._frames:
            batch.append(frames)
            if frames.read_back is not None:
                yield from self._send(session, batch)
                session.send(reading_back(session.replies[-1], frames.read_back), 1)
                batch = []
        yield from self._send(session, batch)

    def _send(self, session: Wire, batch: Sequence[Frames]) -> Exchange[None]:
        session.send(b"".join(frames.data for frames in batch), sum(frames.replies for frames in batch))
        yield from self._await_replies(session, in_case=True)

    def _await_replies(self, session: Wire, *, in_case: bool = False) -> Exchange[None]:
        """Wait for all replies. Raises Lost if the session is lost, after it keeps the replies or errors so far."""
        yield from self._settle(session)
        if session.lost:
            if in_case:
                self._steps = session.replies[self._before :]
            else:
                self._keep_errors([*session.replies, session.partial])
            raise Lost

    def _settle(self, session: Wire) -> Exchange[None]:
        """Wait until the session has answered or ended. End it if it does neither."""
        yield session
        if not session.settled:
            self._silent = True
            if self._run.timeout_factor:
                self._seen = replace(self._seen, hang=(yield from _hang_report(self._worker_db, session.pid)))
            yield from self._end(session)

    def _keep_errors(self, replies: Sequence[Reply]) -> None:
        """Keep the errors of statements after the case's own."""
        errors = (self._reader.message(payload) for reply in replies for payload in _errors(reply))
        self._seen = replace(self._seen, closing=(*self._seen.closing, *errors))

    def _end(self, session: Wire) -> Exchange[None]:
        """End a session that ignored statement_timeout: with SIGTERM, then SIGABRT for a backtrace, then SIGKILL.

        A patched server may have sent the number of any process, which root could kill.
        """
        own = runs_in(session.pid, self._worker_db.cluster.data)
        for number in (signal.SIGTERM, signal.SIGABRT, signal.SIGKILL) if own else ():
            with suppress(ProcessLookupError):
                os.kill(session.pid, number)
            enough = cpu_seconds_of(session.pid) + _EXIT_CPU
            for _ in range(_EXIT_POLLS):
                session.pump_in()
                if session.lost:
                    return
                if cpu_seconds_of(session.pid) > enough:
                    break
                yield _PAUSE
        session.close()

    def _tidy_up(self, session: Wire, status: str) -> Exchange[None]:
        """End what the case left open, and record what remains held."""
        rollback = b"" if status == "I" else messages.query("ROLLBACK")
        session.send(rollback + messages.query(residue.TIDY) + messages.query(residue.LEFT_INSIDE), 2 + bool(rollback))
        yield from self._await_replies(session)
        *closing, answer = session.take_replies()
        self._keep_errors(closing)
        self._require(answer, "list what a session holds")
        inside = residue.pairs(answer)
        left = yield from residue.residue(self._worker_db, session.pid, inside)
        self._seen = replace(self._seen, residue=left)

    def _inspect_session(self, session: Wire) -> Exchange[None]:
        """Query the session's state in one batch, remove the objects of the case, and record the results."""
        repeated = self._run.repeats > 1
        queries = {
            "flush": messages.query(residue.FLUSH) if repeated else b"",
            "called": messages.query(residue.CALLED) if repeated else b"",
            "counters": messages.query(residue.COUNTERS) if self._run.explain else b"",
            "sizes": messages.query(residue.SIZES) if self._run.plannings else b"",
            "digests": messages.query(residue.DIGESTS),
            "types": self._types_query(),
            "roles": self._drop_roles,
            "clear": _CLEAR,
            "contexts": messages.query(residue.CONTEXTS) if repeated else b"",
        }
        queries = {name: frames for name, frames in queries.items() if frames}
        session.send(b"".join(queries.values()), len(queries))
        yield from self._await_replies(session)
        answers = dict(zip(queries, session.take_replies(), strict=True))
        self._keep_errors([answers[name] for name in ("digests", "roles", "clear") if name in answers])
        failed = any(_error(answers[name]) for name in ("roles", "clear") if name in answers)
        self._schema_remains = _error(answers["clear"]) is not None
        # clear() returns whether objects remain elsewhere.
        self._cleared = not failed and residue.table(answers["clear"]) == [["f"]]
        if "types" in answers:
            self._require(answers["types"], "name types")
            self._reader.type_names = {int(oid): name for oid, name in residue.pairs(answers["types"])}
        if "contexts" in answers:
            self._require(answers["contexts"], "list its memory contexts")
            self._require(answers["called"], "list the functions that it has called")
            held = residue.resources(session.pid, answers["contexts"], answers["called"])
            self._seen = replace(self._seen, resources=(*self._seen.resources, held))
        self._seen = replace(
            self._seen,
            steps=self._reader.observations(self._steps),
            digests=residue.pairs(answers["digests"]),
            digested=not _error(answers["digests"]),
            reach=residue.counters(answers["counters"]) if "counters" in answers else {},
            sizes=residue.pairs(answers["sizes"]) if "sizes" in answers else (),
        )

    def _require(self, reply: Reply, what: str) -> None:
        if error := _error(reply):
            if error.sqlstate == DISK_FULL:
                raise self._worker_db.no_room()
            raise ServerError(f"arm {self._worker_db.arm} cannot {what}: {error.text}")

    def _types_query(self) -> bytes:
        oids = ", ".join(map(str, self._reader.unknown_types(self._steps)))
        return messages.query(f"SELECT oid, typname FROM pg_type WHERE oid IN ({oids})") if oids else b""

    def _leave(self, session: Wire) -> Exchange[None]:
        """Terminate the session, and wait until its backend has exited, because it may crash or log during exit.

        Raises Lost if the backend had to be ended.
        """
        session.send(messages.TERMINATE, 1)
        yield from self._settle(session)
        if self._silent:
            raise Lost
        entries = self._worker_db.log.entries()
        self._keep_log(session.pid, entries)

    def _keep_log(self, pid: int, entries: Sequence[Entry]) -> None:
        crash = crash_of(pid, entries, self._worker_db.executable, self._postmaster)
        self._seen = replace(self._seen, log=about(pid, entries), remote=remote(pid, entries), crash=crash)

    def _explain_loss(self, session: Wire) -> Exchange[bool]:
        """Complete the observation of a lost session, and return whether a cause outside of the case ended it."""
        partial = session.partial
        words = [messages.message_of(data) for kind, data in partial.others if kind == messages.ERROR_RESPONSE]
        fatal = words[-1].sqlstate if words and words[-1].severity == "FATAL" else ""
        if not fatal:
            yield from self._await_death()
        if not session.pid and fatal and fatal not in _OUTSIDE_CAUSES:
            raise ServerError(f"arm {self._worker_db.arm} refuses the session: {words[-1].text}")
        entries = self._worker_db.log.entries()
        cut = Outcome.TIMEOUT if self._silent else Outcome.LOST
        steps = self._seen.steps or self._reader.observations(self._steps, partial, cut)
        self._seen = replace(self._seen, steps=steps, residue=None, digests=())
        self._keep_log(session.pid, entries)
        if self._postmaster_killed(entries):
            # the leader of a parallel query fails an assertion at exit
            self._seen = replace(self._seen, crash=None, disturbed=True)
            return True
        if self._seen.crash is not None or self._silent:
            return False
        self._seen = replace(self._seen, disturbed=self._ended_by_others(entries))
        return fatal in _OUTSIDE_CAUSES if fatal else not session.pid or self._seen.disturbed

    def _postmaster_killed(self, entries: Sequence[Entry]) -> bool:
        """Return whether the postmaster is gone without a report of itself or of the death of another process."""
        alive = runs_in(self._postmaster, self._worker_db.cluster.data)
        return not (alive or deaths(entries).lines or reports_of({self._postmaster}, entries))

    def _ended_by_others(self, entries: Sequence[Entry]) -> bool:
        """Return whether the session ended because another process died."""
        return any(entry.text.startswith(_STARTS) for entry in entries) or bool(deaths(entries).lines)

    def _require_room(self) -> None:
        """Raise ServerError if the disk is full, unless the case filled it and its space is free again."""
        refused = any(step.sqlstate == DISK_FULL for step in self._seen.steps)
        if (refused and self._worker_db.is_full()) or _PANIC.search(self._seen.crash or ""):
            raise self._worker_db.no_room()

    def _await_death(self) -> Exchange[None]:
        """Wait until the postmaster has logged which process died, or is gone itself."""
        for _ in range(_DEATH_POLLS):
            if deaths(self._worker_db.log.entries()).lines or not self._worker_db.cluster.alive():
                return
            yield _PAUSE


def _drop_roles(case: Case) -> bytes:
    """Return a message that drops the roles of the case, which are global; b"" if it creates none."""
    made = sorted({role for step in case.all_steps if (role := role_made(step.sql))})
    return messages.query(f"SELECT pgduel_tools.drop_roles('{{{','.join(made)}}}')") if made else b""


def _error(reply: Reply) -> Message | None:
    """Return the error in a reply, or None."""
    return next(map(messages.message_of, _errors(reply)), None)


def _errors(reply: Reply) -> Iterator[bytes]:
    """Yield the payload of each error in a reply."""
    return (payload for kind, payload in reply.others if kind == messages.ERROR_RESPONSE)


_WAITS: Final = """
SELECT pid::text, backend_type, coalesce(state, 'no state'), coalesce(wait_event_type || ': ' || wait_event, 'no wait')
FROM pg_stat_activity WHERE $1::int IN (pid, leader_pid) ORDER BY leader_pid IS NOT NULL, pid"""
_FRAMES: Final = 30  # maximum frames per stack
_SECONDS: Final = 20  # timeout of gdb per process


def _hang_report(worker_db: WorkerDatabase, pid: int) -> Exchange[tuple[str, ...]]:
    """Return lines on the backend and its parallel workers, with stacks if gdb is installed. Raises ServerError."""
    rows = yield from worker_db.admin_query(_WAITS, (str(pid),))
    lines: list[str] = []
    for process, kind, state, wait in rows:
        lines += [f"{kind}, {state}, {wait}", *_stack(int(process or 0), worker_db.cluster.data)]
    return tuple(lines)


def _stack(pid: int, data: Path) -> Iterator[str]:
    """Yield the frames of a process of a server, innermost first, without addresses and process numbers.

    gdb reads the patched program, so root does not run it.
    """
    gdb = shutil.which("gdb")
    if gdb is None:
        yield "  install gdb to see stacks of processes that hang"
        return
    if not runs_in(pid, data):
        yield "  the process has ended, or is no process of the server"
        return
    command = [gdb, "--batch", "--nx", "-p", str(pid), "-ex", "bt"]
    try:
        output = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, stdin=subprocess.DEVNULL,
            cwd="/", **server_account().options(),
        ).stdout  # fmt: skip
    except subprocess.TimeoutExpired:
        yield "  gdb did not end"
        return
    frames = [line for line in output.splitlines() if line.startswith("#")]
    yield from (f"  {frame}" for frame in frames[:_FRAMES])
