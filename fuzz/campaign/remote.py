"""Work on other machines: a process there has servers of its own, and its results travel back in its answers.

It shares no disk with the campaign. It makes the arms from base and series, and their builds must have the keys of the
campaign's builds. Its store is a journal: writes of one job, which the campaign repeats on the store. So a job whose
process dies leaves nothing behind, and runs again.

The functions `prepare`, `execute`, `stop` and `release` are called in that process, which works for one campaign at a
time.
"""

import os
import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from fuzz import workdir
from fuzz.campaign.code_digest import code_digest
from fuzz.campaign.continuous import names
from fuzz.campaign.disk import delete_builds_of_worker, note_build
from fuzz.campaign.plan import Plan
from fuzz.campaign.schedule import Job, RangeResult, Result
from fuzz.campaign.store import KEPT, Store, StoredDoubt
from fuzz.campaign.worker import ERRORS, CaseWork, attached, require_room, revive, server_cpu
from fuzz.errors import DiskFull, PgduelError
from fuzz.execution.worker_database import ROOM
from fuzz.servers import git, owners
from fuzz.servers.arm import ArmSpec, open_arms
from fuzz.servers.build import build_key, list_builds
from fuzz.servers.series import apply_series
from fuzz.sources.workloads import require_workload
from fuzz.triage.blame import Blame
from fuzz.triage.findings import StoredFinding
from fuzz.triage.interestingness import ReducedCase
from oracles.model.case import Case
from oracles.model.finding import Finding

SILENT: Final = 600.0  # seconds without a job after which servers stop: the campaign may have been killed
_TAKEN: Final = 60.0  # seconds since the last job within which another campaign waits

Subject = StoredFinding | StoredDoubt | None
FoundCase = tuple[Finding, str, Case]  # with the case's name
Write = Callable[[Store], object]


@dataclass(frozen=True, slots=True)
class RemoteWork:
    """The setup of a process on another machine. It pickles, and has no path of the campaign's machine but the user's.

    `name` differs between campaigns, and is that of an interrupted one after its resumption.
    """

    name: str
    number: str  # of the campaign, for messages
    specs: tuple[ArmSpec, ...]
    builds: Mapping[str, str]  # arm → key
    same_build: bool
    plan: Plan
    options: str  # as in CaseWork
    records: Mapping[str, Any]  # as in CaseWork
    code: str  # digest


@dataclass(frozen=True, slots=True)
class Preparation:
    """The outcome of `prepare`: it succeeded, or needs trees of bases, or failed for a reason, perhaps only for now."""

    missing: tuple[str, ...] = ()
    refusal: str = ""
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a job, with everything that a local worker would have written."""

    result: Result
    found: tuple[FoundCase, ...]
    others: tuple[FoundCase, ...]  # in place of the cases of explained findings
    writes: tuple[Write, ...]  # in their order, after the findings
    errors: str  # new text of the log of pgduel's own errors
    lines: tuple[str, ...]  # for the user
    directory: str  # in place of the campaign's directory, also in messages of the result
    prepared: bool = True  # whether the process can execute another job


@dataclass(slots=True)
class Journal:
    """A store that keeps the writes of one job. It has the interface `WorkerStore`."""

    directory: Path
    plan: Plan
    found: list[FoundCase] = field(default_factory=list)
    others: list[FoundCase] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    _findings: dict[str, StoredFinding] = field(default_factory=dict)  # by fingerprint: all that were found here
    _explained: dict[str, StoredFinding] = field(default_factory=dict)  # by fingerprint: those of the campaign
    _doubt: StoredDoubt | None = None
    _doubts: dict[tuple[str, str, str], set[str]] = field(default_factory=lambda: defaultdict(set))  # kind → names

    def begin(self, subject: Subject, explained: Sequence[StoredFinding] = ()) -> None:
        """Forget the writes of the job before. `subject` is the finding or doubt of the next one.

        `explained` are the campaign's findings with a case that is no evidence of a new bug.
        """
        self.found.clear()
        self.others.clear()
        self.writes.clear()
        self._explained = {each.finding.fingerprint: each for each in explained}
        if isinstance(subject, StoredFinding):
            self._findings[subject.finding.fingerprint] = subject
        self._doubt = subject if isinstance(subject, StoredDoubt) else None

    def add_finding(self, finding: Finding, case_id: str, case: Case) -> bool:
        """Keep a finding; return whether this process found it for the first time, and it is not explained."""
        self.found.append((finding, case_id, case))
        if finding.fingerprint in self._findings or finding.fingerprint in self._explained:
            return False
        self._findings[finding.fingerprint] = StoredFinding(finding, case_id, case, 1, None, reduced=False)
        return True

    def finding(self, fingerprint: str) -> StoredFinding:
        """Return an explained finding of the campaign, one of this process, or the job's."""
        return self._explained.get(fingerprint) or self._findings[fingerprint]

    def replace_case(self, finding: Finding, case_id: str, case: Case) -> None:
        """Keep another case of a finding."""
        self.others.append((finding, case_id, case))
        found = self._explained.pop(finding.fingerprint)
        self._findings[finding.fingerprint] = StoredFinding(finding, case_id, case, found.count, None, reduced=False)

    def add_doubt(self, doubt: StoredDoubt) -> bool:
        """Keep a doubt, unless this process has found enough others of its kind.

        One that it found before is kept again, because the answer of that job may have been lost.
        """
        names = self._doubts[doubt.oracle, doubt.kind, doubt.reason]
        if doubt.name not in names and len(names) == KEPT:
            return False
        names.add(doubt.name)
        self.writes.append(partial(Store.add_doubt, doubt=doubt))
        return True

    def doubt(self, name: str) -> StoredDoubt | None:
        """Return the job's doubt."""
        return self._doubt

    def tried_again(self, name: str, outcome: str) -> None:
        """Keep the outcome of a doubt."""
        self.writes.append(partial(Store.tried_again, name=name, outcome=outcome))

    def record_reproducer(self, fingerprint: str, reproducer: Path) -> None:
        """Keep nothing, because the campaign writes scripts itself."""

    def record_progress(self, fingerprint: str, smallest: ReducedCase) -> None:
        """Keep nothing, because the end of the job has the smallest case."""

    def record_reduction(self, fingerprint: str, smallest: ReducedCase, seconds: float) -> None:
        """Keep the end of a reduction."""
        kept = partial(Store.record_reduction, fingerprint=fingerprint, smallest=smallest, seconds=seconds)
        self.writes.append(kept)

    def record_blame(self, fingerprint: str, blame: Blame) -> None:
        """Keep the patch to blame."""
        self.writes.append(partial(Store.record_blame, fingerprint=fingerprint, blame=blame))

    def close(self) -> None:
        """Do nothing."""


class _Hosted:
    """The campaign of this process: its servers, its worker, and the journal of the job that runs."""

    def __init__(self, work: RemoteWork) -> None:
        """Build and start the arms. Raises PgduelError, also if a build would be another than the campaign's."""
        self.work = work
        _require_same_builds(work)
        _require_room(len(work.specs))
        _note_builds(work)
        self.used = time.monotonic()
        self.stop = threading.Event()
        with ExitStack() as stack:
            self._arms = stack.enter_context(open_arms(work.specs, _ignore, allow_same_build=work.same_build))
            if _has_own_builds(work):
                delete_builds_of_worker(work.plan.name, frozenset(work.builds.values()))
            directory = stack.enter_context(_directory(work.number))
            self._journal = Journal(directory, work.plan)
            cases = CaseWork(
                attached(self._arms),
                directory,
                work.plan.seed,
                work.options,
                work.records,
                work.plan.given,
                work.plan.files,
                work.plan.engine,
            )
            self._do = stack.enter_context(cases.storing(self._journal, 0, self.stop.is_set))
            for name in work.plan.generators:
                require_workload(name, work.plan.given)
            self._stack = stack.pop_all()
        self.used = time.monotonic()

    def execute(self, job: Job, subject: Subject, explained: Sequence[StoredFinding]) -> Answer:
        """Execute a job. Servers that went away are restarted; the answer tells whether all of them run.

        No case is to blame for a full disk. So the rest of the range is only given back.
        """
        self._journal.begin(subject, explained)
        log = self._journal.directory / ERRORS
        log.unlink(missing_ok=True)
        before = server_cpu(self._arms)
        result = self._do(job)
        lines, prepared = [], True
        if isinstance(result, RangeResult):
            result.counters.server_cpu += server_cpu(self._arms) - before
            if result.outage is not None:
                try:
                    require_room(self._arms)
                    lines = revive(self._arms)
                except DiskFull as error:
                    result.outage = None
                    lines, prepared = [f"{error}; the worker stops its servers"], False
                except PgduelError as error:  # it must not hide the crash that was found
                    lines, prepared = [f"{error}; the worker makes new servers"], False
        self.used = time.monotonic()
        return Answer(
            result,
            tuple(self._journal.found),
            tuple(self._journal.others),
            tuple(self._journal.writes),
            log.read_text() if log.exists() else "",
            tuple(lines),
            str(self._journal.directory),
            prepared,
        )

    def close(self) -> None:
        """Stop and delete the servers."""
        self._stack.close()


def _ignore(_line: str) -> None:
    """Ignore a line of progress, which nobody sees on another machine."""


def _require_room(servers: int) -> None:
    """Raise DiskFull if there is no room for `servers` servers."""
    directory = workdir.clusters()
    if shutil.disk_usage(directory).free < servers * ROOM:
        raise DiskFull(f"the disk of {directory} is full; make room there")


def _has_own_builds(work: RemoteWork) -> bool:
    """Return whether a named campaign has builds on this machine, which the campaign's own machine does not delete."""
    return bool(work.plan.name) and work.plan.name not in names()


def _note_builds(work: RemoteWork) -> None:
    """Note the builds that this machine is about to compile for a named campaign. Raises StorageError."""
    if _has_own_builds(work):
        for key in sorted(set(work.builds.values()) - {build.key for build in list_builds()}):
            note_build(work.plan.name, key)


def _require_same_builds(work: RemoteWork) -> None:
    """Raise PgduelError if a build of this machine would be another than the campaign's."""
    for spec in work.specs:
        key = build_key(apply_series(spec.base.tree, spec.series)[-1], spec.flavor)
        if key != work.builds[spec.name]:
            raise PgduelError(
                f"arm {spec.name} is build {key} there, {work.builds[spec.name]} here; "
                "give all machines the same compiler"
            )


@contextmanager
def _directory(number: str) -> Iterator[Path]:
    """Yield a directory in place of the campaign's. It goes with this process, even if that is killed."""

    def delete() -> None:
        owners.release(owner)
        shutil.rmtree(owner.home, ignore_errors=True)

    owner = owners.claim("remote", workdir.clusters(), delete)
    try:
        directory = owner.home / number
        directory.mkdir()
        yield directory
    finally:
        delete()


def _refusal(work: RemoteWork) -> str:
    """Return why this machine cannot work for a campaign, or ""."""
    if work.code != code_digest():
        return f"its pgduel is another one ({code_digest()} there, {work.code} here); give all the same"
    for path in (work.plan.given.sql, work.plan.given.sqlancer_jar):
        if path is not None and not Path(path).exists():
            return f"it has no {path}; put it there, or on a file system that all machines share"
    return ""


class Host:
    """A process that works for other machines. Its methods may be called in any thread; jobs wait for each other."""

    def __init__(self, silent: float = SILENT) -> None:
        """`silent` is the time in seconds without a job after which the servers stop."""
        self._silent = silent
        self._lock = threading.RLock()
        self._hosted: _Hosted | None = None

    def prepare(self, work: RemoteWork, pack: bytes | None) -> Preparation:
        """Start the servers of a campaign. `pack` has the trees of bases that an earlier call missed."""
        try:
            with self._lock:
                return self._prepared(work, pack)
        except PgduelError as error:
            return Preparation(refusal=str(error), busy=isinstance(error, DiskFull))

    def _prepared(self, work: RemoteWork, pack: bytes | None) -> Preparation:
        if refusal := _refusal(work):
            return Preparation(refusal=refusal)
        if self._hosted is not None:
            if self._hosted.work == work:
                self._hosted.stop.clear()
                return Preparation()
            if self._hosted.work.name != work.name and time.monotonic() - self._hosted.used < _TAKEN:
                return Preparation(refusal=f"it works for another campaign ({self._hosted.work.number})", busy=True)
        self._close()
        if pack is not None:
            git.unpack(pack, failing="cannot store the base")
        if missing := git.missing_trees(tuple(dict.fromkeys(spec.base.tree for spec in work.specs))):
            return Preparation(missing=missing)
        self._hosted = _Hosted(work)
        self._watch()
        return Preparation()

    def _watch(self) -> None:
        """Stop the servers when there was no job for a while."""
        timer = threading.Timer(self._silent / 10, self._close_if_silent)
        timer.daemon = True
        timer.start()

    def _close_if_silent(self) -> None:
        with self._lock:
            if self._hosted is not None and time.monotonic() - self._hosted.used > self._silent:
                self._close()
            if self._hosted is not None:
                self._watch()

    def execute(self, name: str, job: Job, subject: Subject, explained: Sequence[StoredFinding] = ()) -> Answer | None:
        """Execute a job of a prepared campaign; return None if this process is not prepared for it.

        After an exception, or if its servers do not start again, it is not.
        """
        with self._lock:
            if self._hosted is None or self._hosted.work.name != name:
                return None
            try:
                answer = self._hosted.execute(job, subject, explained)
            except BaseException:
                self._close()
                raise
            if not answer.prepared:
                self._close()
            return answer

    def stop(self, name: str) -> None:
        """Request an early end of the running job, and of those that follow."""
        hosted = self._hosted  # without the lock, which the running job holds
        if hosted is not None and hosted.work.name == name:
            hosted.stop.set()

    def release(self, name: str) -> None:
        """Stop the servers of a campaign."""
        with self._lock:
            if self._hosted is not None and self._hosted.work.name == name:
                self._close()

    def _close(self) -> None:
        hosted, self._hosted = self._hosted, None
        if hosted is not None:
            hosted.close()


_HOST: Final = Host()


def prepare(work: RemoteWork, pack: bytes | None = None) -> Preparation:
    """Prepare this process for a campaign."""
    if os.getpgrp() != os.getpid():
        os.setpgrp()  # Ctrl-C in the campaign's terminal is for the campaign, which lets running jobs end
    return _HOST.prepare(work, pack)


def execute(name: str, job: Job, subject: Subject, explained: Sequence[StoredFinding]) -> Answer | None:
    """Execute a job in this process."""
    return _HOST.execute(name, job, subject, explained)


def stop(name: str) -> None:
    """End the running job of this process early."""
    _HOST.stop(name)


def release(name: str) -> None:
    """Stop the servers of this process."""
    _HOST.release(name)
