"""Continuous campaign: a name for runs that follow each other until they are stopped.

Each run is a campaign with servers, a store and a number of its own. Its seed follows the seed of the run before. Bugs
of earlier runs are known faults: counted, but not reduced again.
"""

import os
import re
import signal
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from fuzz import documents, workdir
from fuzz.campaign.catalog import all_campaigns, opened
from fuzz.campaign.known import KnownFault, known_fault
from fuzz.campaign.plan import Plan
from fuzz.errors import CaseError, PgduelError
from fuzz.triage.bugs import bug_key
from fuzz.triage.stored_finding import StoredFinding

RUN_MINUTES: Final = 60.0
_PATIENCE: Final = 1.0  # seconds; `process_of` holds the lock for a moment
_PLAN: Final = ".plan.json"
_PROCESS: Final = ".process"
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


class BugStatus(StrEnum):
    """The state of a bug after the last run."""

    NEW = "new"  # the last run was the first to show it
    STILL_THERE = "still there"
    NOT_SEEN = "not seen again"  # by the last run


@dataclass(frozen=True, slots=True)
class Run:
    """One run: the number of its campaign, its plan, what it judged, and what it found."""

    number: str
    plan: Plan
    seconds: float
    cases: int
    statements: int  # judged
    ended: str  # reason; "" while it runs, or after it was killed
    findings: tuple[StoredFinding, ...]


@dataclass(frozen=True, slots=True)
class BugHistory:
    """A bug over all runs."""

    key: str
    first: str  # run
    last: str  # run
    cases: int
    status: BugStatus
    finding: StoredFinding  # of the first run that reduced it, else of the first run


def require_name(name: str) -> str:
    """Return a valid name. Raises CaseError."""
    if not _NAME.fullmatch(name) or name == "last":
        raise CaseError(f"{name!r} is no name; a campaign's name begins with a letter, and has letters, digits, . _ -")
    return name


def names() -> tuple[str, ...]:
    """Return the names of all continuous campaigns, sorted."""
    return tuple(sorted(path.name.removesuffix(_PLAN) for path in workdir.campaigns().glob(f"*{_PLAN}")))


def keep_plan(plan: Plan) -> None:
    """Keep the options of a campaign, from which each run makes its own plan. Raises StorageError."""
    workdir.write(_file(plan.name, _PLAN), documents.dumps(plan))


def kept_plan(name: str) -> Plan:
    """Return the kept options of a campaign. Raises CaseError if there are none."""
    try:
        return documents.loads(_file(name, _PLAN).read_text(encoding="utf-8"), Plan)
    except FileNotFoundError as error:
        known = ", ".join(names()) or "none yet"
        raise CaseError(f"no campaign is called {name}; `{workdir.COMMAND} campaign start` has: {known}") from error


def runs_of(name: str) -> tuple[Run, ...]:
    """Return the runs of a campaign, the oldest first. Stores that cannot be read have none."""
    return tuple(run for directory in all_campaigns() for run in _runs_in(directory) if run.plan.name == name)


def _runs_in(directory: Path) -> Iterator[Run]:
    with suppress(PgduelError), opened(directory) as store:
        if store.begun:
            counters = store.counters
            judged = (counters.seconds, counters.cases.total(), counters.statements_judged)
            yield Run(directory.name, store.plan, *judged, store.ended, store.findings())


def next_plan(plan: Plan, runs: Sequence[Run], minutes: float) -> Plan:
    """Return the plan of the run after these: the next seed, and known faults for the bugs that they reduced."""
    faults = {
        found.finding.fingerprint: KnownFault(found.finding.fingerprint, link=f"campaign {run.number}")
        for run in reversed(runs)
        for found in run.findings
        if found.reduced and known_fault(found.finding, plan.known) is None
    }
    seed = max([plan.seed, *(run.plan.seed + 1 for run in runs)])
    known = (*plan.known, *(faults[fingerprint] for fingerprint in sorted(faults)))
    return replace(plan, seed=seed, minutes=minutes, known=known)


def history(runs: Sequence[Run]) -> tuple[BugHistory, ...]:
    """Return the bugs of all runs, the newest first."""
    occurrences = [(run, found) for run in runs for found in run.findings]
    reduced = {found.finding.fingerprint: found for _, found in reversed(occurrences) if found.reduced}
    bugs: dict[str, list[tuple[Run, StoredFinding]]] = defaultdict(list)
    for run, found in occurrences:
        bugs[bug_key(reduced.get(found.finding.fingerprint, found))].append((run, found))
    return tuple(_history(key, found, runs[-1]) for key, found in reversed(bugs.items()))


def _history(key: str, occurrences: Sequence[tuple[Run, StoredFinding]], newest: Run) -> BugHistory:
    first, last = occurrences[0][0].number, occurrences[-1][0].number
    status = BugStatus.NEW if first == last else BugStatus.STILL_THERE
    if last != newest.number:
        status = BugStatus.NOT_SEEN
    shown = next((found for _, found in occurrences if found.reduced), occurrences[0][1])
    return BugHistory(key, first, last, sum(found.count for _, found in occurrences), status, shown)


@contextmanager
def claimed(name: str) -> Iterator[None]:
    """Be the only process that runs this campaign, and the one that `stop` ends. Raises CaseError."""
    process = _file(name, _PROCESS)
    try:
        with FileLock(f"{process}.lock", timeout=_PATIENCE):
            workdir.write(process, str(os.getpid()))
            try:
                yield
            finally:
                process.unlink(missing_ok=True)
    except Timeout as error:
        raise CaseError(f"campaign {name} runs already; stop it with {workdir.COMMAND} campaign stop {name}") from error


def process_of(name: str) -> int | None:
    """Return the process that runs this campaign, or None."""
    process = _file(name, _PROCESS)
    with suppress(Timeout), FileLock(f"{process}.lock", timeout=0):
        return None
    with suppress(OSError, ValueError):
        return int(process.read_text())
    return None


def stop(name: str) -> None:
    """Have the process of this campaign end its run and then itself. Raises CaseError if there is none."""
    process = process_of(name)
    if process is None:
        raise CaseError(f"campaign {name} does not run; see {workdir.COMMAND} campaign status {name}")
    os.kill(process, signal.SIGINT)


def _file(name: str, suffix: str) -> Path:
    return workdir.campaigns() / f"{require_name(name)}{suffix}"
