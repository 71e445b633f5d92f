"""Continuous campaign: a name for runs that follow each other until they are stopped.

Each run is a campaign with servers, a store and a number of its own. On the builds of the run before, it goes on with
the next cases of that run's seed. On other builds, it begins with the next seed. Bugs of earlier runs are known faults:
counted, but not reduced again.
"""

import os
import re
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from fuzz import documents, workdir
from fuzz.campaign.bug_history import BugStatus, CampaignRun, history
from fuzz.campaign.catalog import all_campaigns, opened, unless_unreadable
from fuzz.campaign.counters import Counters, sample_of
from fuzz.campaign.database import Say, home
from fuzz.campaign.direction.discoveries import Discoveries
from fuzz.campaign.edges import edges_of_one_case
from fuzz.campaign.known import KnownFault, fault_of
from fuzz.campaign.plan import Plan
from fuzz.campaign.postgresql import shared
from fuzz.campaign.schedule import next_cases
from fuzz.errors import CaseError
from fuzz.servers.arm_options import ArmOptions
from fuzz.triage.findings import StoredFinding, untriaged
from oracles.model.case import generator_of

RUN_MINUTES: Final = 60.0
_LOCK_TIMEOUT: Final = 1.0  # seconds; `process_of` holds the lock for a moment
_PLAN: Final = ".plan.json"
_PROCESS: Final = ".process"
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


def require_name(name: str) -> str:
    """Return a valid name. Raises CaseError."""
    if not _NAME.fullmatch(name) or name == "last":
        raise CaseError(f"{name!r} is no name; a campaign's name begins with a letter, and has letters, digits, . _ -")
    return name


def names() -> tuple[str, ...]:
    """Return the names of all continuous campaigns that this machine has started, sorted."""
    return tuple(sorted(path.name.removesuffix(_PLAN) for path in home().glob(f"*{_PLAN}")))


def keep_plan(plan: Plan) -> None:
    """Keep the options of a campaign, from which each run makes its own plan. Raises StorageError."""
    workdir.write(file_of(plan.name, _PLAN), documents.dumps(plan))


def kept_plan(name: str) -> Plan:
    """Return the kept options of a campaign, or those of its last run. Raises CaseError if there are none."""
    try:
        return documents.loads(file_of(name, _PLAN).read_text(encoding="utf-8"), Plan)
    except FileNotFoundError as error:
        if runs := runs_of(name):  # of another machine
            return runs[-1].plan
        known = ", ".join(names()) or "none yet"
        raise CaseError(f"no campaign is called {name}; `{workdir.COMMAND} campaign start` has: {known}") from error


def runs_of(name: str, say: Say | None = None) -> tuple[CampaignRun, ...]:
    """Return the runs of a campaign, the oldest first. Stores that cannot be read have none; `say` gets the reason.

    Without `say`, raises TransientError: a store may be readable later, and a new run would repeat what it has.
    """
    return tuple(run for directory in all_campaigns() for run in _runs_in(directory, name, say))


def directory_of(run: CampaignRun) -> Path:
    """Return the directory of a run."""
    return home() / run.number


def _runs_in(directory: Path, name: str, say: Say | None) -> Iterator[CampaignRun]:
    with unless_unreadable(say), opened(directory) as store:
        if store.begun and (plan := store.plan).name == name:
            arms, last = store.arms, store.last_sample() or sample_of(Counters(), 0, 0.0)
            yield CampaignRun(
                number=directory.name,
                plan=plan,
                seconds=last.seconds,
                cases=last.cases,
                statements=last.statements,
                ended=store.ended,
                findings=store.findings(),
                builds={arm: facts["build"] for arm, facts in arms.items()},
                replays=store.replays(),
                series={arm: tuple(facts["series"]) for arm, facts in arms.items()},
                database_size=store.database_size,
            )


def discoveries_of(runs: Sequence[CampaignRun]) -> Discoveries:
    """Return the discoveries of runs: those of the last one, and those that its plan has of the runs before it.

    A run whose store cannot be read has none. Raises TransientError.
    """
    if not runs:
        return Discoveries()
    last = runs[-1]
    found = last.plan.discoveries
    new = (bug.finding for bug in history(runs) if bug.first == last.number)
    bugs = Counter(generator_of(each.case_id) for each in new if fault_of(each, last.plan.known) is None)
    with unless_unreadable(), opened(directory_of(last)) as store:
        edges = edges_of_one_case(store.directory, last.plan.generators)
        found = found.plus(Discoveries.of(store.counters, edges, bugs))
    return found


def cases_left(plan: Plan, runs: Sequence[CampaignRun], builds: Mapping[str, str]) -> dict[str, int]:
    """Return the first case of each generator that the last run left, if that run had the same builds; else {}.

    So sources that replay whole files do not replay the same ones in each run. With other settings, oracles or
    generators, all cases begin again. So they do after two killed runs of one seed, because a case may kill this
    process. Raises TransientError.
    """
    if not runs or runs[-1].plan.seed < plan.seed or _killed_twice(runs):
        return {}
    last = runs[-1]
    if last.builds != builds or _judging(last.plan) != _judging(plan):
        return {}
    with unless_unreadable(), opened(directory_of(last)) as store:
        return next_cases(last.plan.generators, store.done(), last.plan.first, last.plan.begin)
    return {}


def _judging(plan: Plan) -> tuple[object, ...]:
    """Return the options that decide how a case of equal builds is made and judged."""
    return plan.arms.settings, plan.given, plan.files, plan.engine


def _killed_twice(runs: Sequence[CampaignRun]) -> bool:
    """Return whether the last two runs had one seed, and neither ended by itself."""
    killed = [run.plan.seed for run in runs[-2:] if not run.ended]
    return len(killed) == 2 and killed[0] == killed[1]


def next_plan(
    plan: Plan, runs: Sequence[CampaignRun], arms: ArmOptions, minutes: float, begin: Mapping[str, int]
) -> Plan:
    """Return the plan of the run after these, with known faults for the bugs that they reduced.

    It goes on with the cases `begin` of the last run's seed; without any, it has the next seed.

    A bug that was fixed is reduced and blamed again, because another one may have its fingerprint.
    """
    there = {
        found.finding.fingerprint
        for bug in history(runs)
        if bug.status is not BugStatus.FIXED
        for found in bug.findings
    }
    faults = {
        found.finding.fingerprint: KnownFault(found.finding.fingerprint, link=f"campaign {run.number}")
        for run in reversed(runs)
        for found in run.findings
        if found.confirmed and found.triaged and fault_of(found, plan.known) is None
    }
    seed = runs[-1].plan.seed if begin else max([plan.seed, *(run.plan.seed + 1 for run in runs)])
    known = (*plan.known, *(faults[fingerprint] for fingerprint in sorted(faults.keys() & there)))
    return replace(plan, seed=seed, minutes=minutes, known=known, arms=arms, begin=begin)


def left_over(runs: Sequence[CampaignRun], builds: Mapping[str, str]) -> tuple[StoredFinding, ...]:
    """Return the findings that the last run did not reduce, if the next run has the same builds.

    One that the last run took over itself is left out if it tried to reduce it: it would be tried in vain for ever.
    """
    if not runs or runs[-1].builds != builds:
        return ()
    return tuple(found for found in untriaged(runs[-1].findings) if found.count or found.smallest is None)


@contextmanager
def claimed(name: str) -> Iterator[None]:
    """Be the only process that runs this campaign, and the one that `stop` ends. Raises CaseError."""
    process = file_of(name, _PROCESS)
    try:
        with FileLock(f"{process}.lock", timeout=_LOCK_TIMEOUT):
            if other := _runner_elsewhere(name):
                raise CaseError(f"campaign {name} runs already: {other}; stop it there first")
            workdir.write(process, str(os.getpid()))
            try:
                yield
            finally:
                process.unlink(missing_ok=True)
    except Timeout as error:
        raise CaseError(f"campaign {name} runs already; stop it with {workdir.COMMAND} campaign stop {name}") from error


def runner_of(name: str) -> str:
    """Return the process that runs this campaign, here or on another machine, in words; "" if there is none."""
    process = process_of(name)
    return f"process {process}" if process else _runner_elsewhere(name)


def _runner_elsewhere(name: str) -> str:
    server = shared()
    return "" if server is None else server.holder(name)


def process_of(name: str) -> int | None:
    """Return the process of this machine that runs this campaign, or None."""
    process = file_of(name, _PROCESS)
    with suppress(Timeout), FileLock(f"{process}.lock", timeout=0):
        return None
    with suppress(OSError, ValueError):
        return int(process.read_text())
    return None


def stop(name: str) -> None:
    """Have the process of this campaign end its run and then itself. Raises CaseError if there is none."""
    process = process_of(name)
    if process is None:
        if other := _runner_elsewhere(name):
            raise CaseError(f"campaign {name} runs elsewhere: {other}; stop it there")
        raise CaseError(f"campaign {name} does not run; see {workdir.COMMAND} campaign status {name}")
    os.kill(process, signal.SIGINT)


def file_of(name: str, suffix: str) -> Path:
    """Return the path of a file of a campaign. Raises CaseError."""
    return home() / f"{require_name(name)}{suffix}"
