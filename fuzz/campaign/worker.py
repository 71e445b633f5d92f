"""Worker process: executes the cases of ranges on its own executor, and reduces findings.

It is attached to the servers of the arms, which only the parent process starts and stops.
"""

import gc
import hashlib
import os
import time
import traceback
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from fuzz import store_url, workdir
from fuzz.campaign.code_digest import code_digest
from fuzz.campaign.counters import Counters
from fuzz.campaign.database import outlasted
from fuzz.campaign.doubt_outcome import OTHER, SAME, outcome_text
from fuzz.campaign.edges import kept_places, marks_of
from fuzz.campaign.known import corrections_of, marked
from fuzz.campaign.plan import Plan
from fuzz.campaign.reach import reach
from fuzz.campaign.schedule import Job, Range, RangeResult, Reduction, ReductionResult, Result, Retry, RetryResult
from fuzz.campaign.store import Store, StoredDoubt, doubt_of
from fuzz.campaign.user_files import UserFile, error_in_file, load
from fuzz.engines.engine import DrawnCase, Engine, EngineName
from fuzz.engines.guided.engine import GuidedEngine
from fuzz.engines.guided.inputs import left_inputs
from fuzz.engines.guided.known_edges import KnownEdges
from fuzz.engines.seeded import SeededEngine
from fuzz.errors import DiskFull, PgduelError, ServerError, StorageError, TransientError
from fuzz.execution.exchanges import Abandoned
from fuzz.execution.executor import Executor
from fuzz.execution.judging import JudgedCase, assignments, judge_despite_errors
from fuzz.execution.source_database import SourceDatabase
from fuzz.execution.trial import tried
from fuzz.execution.worker_database import is_full, no_room
from fuzz.generators.generator import Scale
from fuzz.servers.account import server_account
from fuzz.servers.arm import Arm, explained_arm, features_of, fresh_servers
from fuzz.servers.cluster import Cluster, answers
from fuzz.servers.edges.counters import SEVERAL, Edges
from fuzz.servers.processes import runs_in
from fuzz.sources.source import UserInput
from fuzz.triage.correction import is_corrected
from fuzz.triage.findings import StoredFinding
from fuzz.triage.interestingness import ReducedCase
from fuzz.triage.triage import Log, Triage, as_executed
from oracles.crash import crash_report
from oracles.explain.nodes import plan_shape
from oracles.model.case import Case, CaseId
from oracles.model.finding import Finding
from oracles.model.observation import CaseObservation, Outcome, Run
from oracles.model.oracle import Inconclusive, Observations, Oracle, Unstable, all_oracles, duel

EXPLAINED = 10  # one of so many cases has an additional explained run
REPORTED = 1.0  # seconds after which a worker reports results within a range; it reports findings at once
ERRORS = "errors.log"
LOGGED = 10  # limit of logged errors of one place, for each worker
RETRIES = 20  # of a doubt
REPEATED = 5  # retries with the same doubt after which it is not due to chance
EXAMPLES = 10  # limit of cases of a finding that are tried while none is evidence of a new bug
_YOUNG = 50_000  # allocations that trigger garbage collection; syntax trees have many objects, but no cycles


class _AttachedCluster(Cluster):
    """A cluster that another process owns. It pickles, and never starts or stops a server."""

    def __init__(self, cluster: Cluster) -> None:
        """Copy the server's address and paths, without the owner's state."""
        self.build = cluster.build
        self.name = cluster.name
        self.port = cluster.port
        self.data = cluster.data
        self.log = cluster.log
        self.socket_dir = cluster.socket_dir

    @property
    def pid(self) -> int:
        """Return the postmaster's process number, which its owner may have changed. Raises ServerError."""
        try:
            with server_account().file_access():
                return int((self.data / "postmaster.pid").read_text().splitlines()[0])
        except (OSError, ValueError, IndexError) as error:
            raise ServerError(f"the server of arm {self.name} is down") from error

    def alive(self) -> bool:
        """Return whether the postmaster runs."""
        try:
            return runs_in(self.pid, self.data)
        except ServerError:
            return False

    def restart(self, mode: str = "fast") -> None:
        """Raise ServerError, because only the owner restarts the server."""
        raise ServerError(f"the server of arm {self.name} is down")


def attached(arms: Sequence[Arm]) -> tuple[Arm, ...]:
    """Return the arms in the form for worker processes."""
    return tuple(replace(arm, cluster=_AttachedCluster(arm.cluster)) for arm in arms)


def running(arm: Arm) -> int:
    """Return the process number of the arm's postmaster. Raises ServerError if it is down."""
    if not arm.cluster.alive():
        raise ServerError(f"the server of arm {arm.name} is down")
    return arm.cluster.pid


def server_cpu(arms: Sequence[Arm]) -> float:
    """Return the CPU time in seconds of the servers."""
    return sum(arm.cluster.cpu_seconds() for arm in arms)


def require_room(arms: Sequence[Arm]) -> None:
    """Raise DiskFull if the disk of a server is full."""
    for arm in arms:
        with suppress(FileNotFoundError):  # its data directory is gone, which its restart reports
            if is_full(arm.cluster):
                raise DiskFull(no_room(arm.name, arm.cluster))


def revive(arms: Sequence[Arm]) -> list[str]:
    """Restart the servers that are down or do not answer, and return a line for each. Raises ServerError."""
    lines = []
    for arm in arms:
        alive = arm.cluster.alive()
        if not alive or not answers(arm.cluster):
            arm.cluster.restart()
            why = "does not answer" if alive else "was killed from outside"
            lines.append(f"the server of arm {arm.name} {why}; it is restarted")
    return lines


class WorkerStore(Log, Protocol):
    """Interface of the store for a worker. All methods raise StorageError."""

    @property
    def plan(self) -> Plan:
        """Return the campaign's plan."""

    def add_finding(self, finding: Finding, case_id: str, case: Case) -> bool:
        """Store or count a finding, and return whether it is new."""

    def finding(self, fingerprint: str) -> StoredFinding:
        """Return a finding."""

    def replace_case(self, finding: Finding, case_id: str, case: Case) -> None:
        """Store another case of a finding in place of its case."""

    def add_doubt(self, doubt: StoredDoubt) -> bool:
        """Store a doubt unless there are enough of its kind, and return whether it was stored."""

    def doubt(self, name: str) -> StoredDoubt | None:
        """Return the doubt of this name, or None."""

    def tried_again(self, name: str, outcome: str) -> None:
        """Record the outcome of later tries of a doubt."""

    def close(self) -> None:
        """Release the store's resources."""


@dataclass(frozen=True, slots=True)
class CaseWork:
    """The setup of worker processes. It pickles."""

    arms: tuple[Arm, ...]
    directory: Path
    seed: int
    options: str  # command-line options with which `pgduel replay` opens the same arms
    records: Mapping[str, Any]  # arm → its build, base and series
    given: UserInput = field(default_factory=UserInput)
    files: tuple[UserFile, ...] = ()
    engine: EngineName = EngineName.SEEDED
    store: str = field(default_factory=store_url.store_url, repr=False)  # the URL, which new processes do not inherit

    def digest(self) -> str:
        """Return a digest of builds, settings, features, and pgduel's code and the user's.

        These determine the edges of a case.
        """
        arms = [(arm.build.key, arm.settings, arm.features) for arm in self.arms]
        return hashlib.sha256(repr((arms, self.files, code_digest())).encode()).hexdigest()[:12]

    def __call__(self, number: int, stop: Callable[[], bool]) -> AbstractContextManager[Callable[[Job], Result]]:
        """Set up worker `number` with the campaign's store."""
        store_url.keep(self.store)
        return self.storing(Store(self.directory, _ignore), number, stop)

    @contextmanager
    def storing(self, store: WorkerStore, number: int, stop: Callable[[], bool]) -> Iterator[Callable[[Job], Result]]:
        """Set up worker `number` with a store, which it closes; its first job creates its executor."""
        gc.set_threshold(_YOUNG)
        for file in self.files:
            load(file)
        worker = _Worker(self, number, stop, store)
        try:
            yield worker.do
        finally:
            worker.close()


class _Worker:
    """A worker's store, oracle assignments and source database, and its executor while the servers are up."""

    def __init__(self, work: CaseWork, number: int, stop: Callable[[], bool], store: WorkerStore) -> None:
        self._work = work
        self._name = f"w{number}"
        self._stop = stop
        self._store = store
        self._triage = Triage(work.options, work.records, self._store, corrections_of(self._store.plan.known))
        self._assigned = assignments(all_oracles(), work.arms)
        self._arms = tuple(arm.name for arm in work.arms)
        self._features = features_of(work.arms)
        explained = explained_arm(work.arms)
        self._explained = explained.name
        self._alone = assignments(all_oracles(), [explained])  # without another arm
        self._executor: Executor | None = None
        self._logged: Counter[Hashable] = Counter()  # errors by place
        self._target = SourceDatabase(work.arms[0], self._name, work.given, work.arms)
        self._edges = Edges.of(work.arms, explained, self._name, work.directory)
        self._marks = marks_of(self._store.plan.generators)
        self._engine = self._new_engine(number)

    def _new_engine(self, number: int) -> Engine:
        if self._work.engine is EngineName.SEEDED:
            return SeededEngine(Scale.of_arms(len(self._arms)), self._target, self._features)
        places = kept_places(self._work.directory)
        assert self._edges is not None  # the command line requires the flavor
        assert places is not None
        engine = GuidedEngine(
            self._edges,
            KnownEdges.of(self._work.digest()),
            () if self._store.plan.even else places.preferred,
            self._work.directory,
            self._features,
            seed=self._work.seed,
            number=number,
        )
        log_killed(self._work.directory, number)
        if number == 0:
            engine.begin(self._store.plan.generators)
        return engine

    def close(self) -> None:
        self._engine.close()
        self._leave_executor()
        self._store.close()

    def _leave_executor(self) -> None:
        if self._executor is not None:
            self._executor.close()
        self._executor = None
        self._target.close()

    def _entered(self) -> Executor:
        if self._executor is None:
            counted = None if self._edges is None else self._edges.counters.parameters
            self._executor = Executor(self._work.arms, self._name, stop=self._stop, parameters=counted)
        return self._executor

    def do(self, job: Job) -> Result:
        if isinstance(job, Reduction):
            return self._reduce(job)
        return self._retry(job) if isinstance(job, Retry) else self._run(job)

    def _run(self, job: Range) -> RangeResult:
        """Execute cases until there is something to report. An abandoned case is not done, so it is assigned again."""
        result = RangeResult()
        began, until = self._cpu_seconds(), time.monotonic() + REPORTED
        try:
            for case_id in job.case_ids(self._work.seed):
                self._try(case_id, result)
                result.done += 1
                if result.found or self._stop() or time.monotonic() > until:
                    break  # the rest is assigned again
        except Abandoned:
            pass
        except ServerError as error:
            result.outage = str(error)
            self._leave_executor()
        except StorageError as error:
            result.fatal = str(error)
        result.counters.client_cpu += self._cpu_seconds() - began
        return result

    def _cpu_seconds(self) -> float:
        return _cpu_seconds() + self._engine.cpu_seconds()

    def _try(self, case_id: CaseId, result: RangeResult) -> None:
        """Execute one case. Errors of pgduel itself are counted and logged."""
        drawn: DrawnCase | None = None
        executed = False
        if self._edges is not None:
            self._edges.counters.clear()
        try:
            drawn = self._engine.draw(case_id)
            executed = self._execute(case_id, drawn, result)
        except (Abandoned, StorageError):
            raise
        except ServerError:
            self._record(drawn)
            raise
        except Exception as error:
            self._record(drawn)
            name = str(case_id) if drawn is None else drawn.name
            result.counters.failed(case_id.generator, self._log(case_id.generator, name, error, result))
        finally:
            self._engine.conclude(executed=executed)

    def _record(self, drawn: DrawnCase | None) -> None:
        """Store the input of a case before its name is reported. Raises StorageError."""
        if drawn is not None:
            outlasted(drawn.record, _ignore)

    def _log(self, generator: str, name: str, error: Exception, result: RangeResult) -> str:
        """Log an error of pgduel itself, keep a line about it for the user, and return its kind."""
        log = self._log_traceback(f"case {name}", error)
        kind = type(error).__name__
        own = error_in_file(error)
        what = f"case {name}: {own}" if own else f"pgduel failed on case {name}: {error!r}"
        result.failures[f"{generator}: {kind}"] = f"{what} (see {log}, also for others of its kind)"
        return kind

    def _execute(self, case_id: CaseId, drawn: DrawnCase, result: RangeResult) -> bool:
        """Execute a case, and judge it unless a trial suffices; return whether that was in time."""
        if drawn.is_new is None:
            return self._judge(case_id, drawn, {}, result)
        servers = self._postmasters()
        conspicuous = tried(self._entered(), drawn.case, self._explained, self._alone)
        self._require(servers, drawn.name)
        if not (drawn.is_new() or conspicuous):
            return True
        return self._judge(case_id, drawn, conspicuous, result)

    def _judge(self, case_id: CaseId, drawn: DrawnCase, conspicuous: Observations, result: RangeResult) -> bool:
        """Execute and judge a case; return whether that was in time.

        `conspicuous` are runs of a trial, which are judged if those of the oracles show nothing.
        """
        executor = self._entered()
        servers = self._postmasters()
        name, case = drawn.name, drawn.case
        explained = Run(self._explained, case.modes, explain=True)
        known = executor.observe(case, [explained]) if case_id.index % EXPLAINED == 0 else {}
        judged = self._judged(executor, servers, case, known, conspicuous)
        if judged.is_doubted or judged.errors:
            self._record(drawn)
        result.found += self._store_findings(name, case, judged)[1]
        self._require(servers, name)
        if judged.outage is not None:
            raise judged.outage
        if not judged.complete:
            raise Abandoned
        for oracle, verdict in judged.verdicts:
            if isinstance(verdict, Inconclusive | Unstable):
                self._store.add_doubt(doubt_of(oracle, verdict, name, case))
        reference, *_ = duel(case, self._arms)
        result.counters.count_steps(case_id.generator, case, judged.observations[reference])
        result.counters.count_verdicts(case_id.generator, judged)
        kinds = [self._log(case_id.generator, name, error, result) for error in judged.errors]
        for kind in kinds[:1]:
            result.counters.failed_in_part(case_id.generator, kind)
        if case.part:
            result.counters.count_part(case, judged)
        if explained in judged.observations:  # an oracle may have requested it
            self._count_plans(case_id.generator, judged.observations[explained], result.counters)
        return in_time(judged.observations.values())

    def _judged(
        self, executor: Executor, servers: list[int], case: Case, known: Observations, conspicuous: Observations
    ) -> JudgedCase:
        """Execute and judge a case, with its conspicuous runs if those of the oracles show nothing."""
        judged = self._judged_once(executor, servers, case, known)
        if conspicuous and not judged.is_doubted:
            # Not in the first judgement: then shared runs (SharedRun) would differ between the arms.
            judged = self._judged_once(executor, servers, case, {**known, **conspicuous})
        if self._edges is not None:  # a user's generator may give its cases another name
            self._edges.note(self._marks.get(case.generator, SEVERAL))
        return judged

    def _judged_once(self, executor: Executor, servers: list[int], case: Case, known: Observations) -> JudgedCase:
        """Execute and judge a case. If one of these servers went away, only crashes count: one may be the cause."""
        judged = judge_despite_errors(executor, self._assigned, case, known)
        with suppress(ServerError):
            if self._postmasters() == servers:
                return judged
        kept = {each.oracle.name for each in self._assigned if each.oracle.judges_lost_servers}
        return replace(judged, verdicts=tuple(each for each in judged.verdicts if each[0] in kept))

    def _store_findings(self, case_id: str, case: Case, judged: JudgedCase) -> tuple[list[str], list[str]]:
        """Commit the findings of a case; return the fingerprints of all, and of those that are to be reduced.

        All are committed first. What follows may compile and start servers, and pgduel may be killed meanwhile.
        """
        shown = [self._as_executed(case_id, case, found, judged.observations) for found in judged.findings]
        new = [self._store.add_finding(finding, case_id, as_run) for finding, as_run in shown]
        to_reduce = []
        for is_new, (finding, as_run) in zip(new, shown, strict=True):
            if is_new or self._replaces(finding, case_id, as_run):
                self._write_script(finding.fingerprint)
                to_reduce.append(finding.fingerprint)
        return [finding.fingerprint for finding, _ in shown], to_reduce

    def _as_executed(
        self, case_id: str, case: Case, found: Finding, observations: Observations
    ) -> tuple[Finding, Case]:
        """Return a finding and its case in the form in which it was executed; the case itself after an error."""
        try:
            as_run, executed = as_executed(case, found, observations)
        except Exception as error:
            self._log_traceback(f"finding {found.fingerprint} of case {case_id}", error)
            as_run, executed = case, found
        return marked(executed, as_run, self._store.plan.known), as_run

    def _write_script(self, fingerprint: str) -> None:
        """Write the reproducer of a finding. It stays without one after an error of pgduel itself."""
        try:
            outlasted(partial(self._triage.write, self._store.finding(fingerprint)), _ignore)
        except StorageError:
            raise
        except Exception as error:
            self._log_traceback(f"reproducer of finding {fingerprint}", error)

    def _replaces(self, finding: Finding, case_id: str, case: Case) -> bool:
        """Return whether a case took the place of an earlier one, which is no evidence of a new bug.

        Different faults may have one fingerprint. So later cases are tried, too, until one shows a fault that no
        correction hides.
        """
        earlier = self._store.finding(finding.fingerprint)
        if not earlier.explained or earlier.count > EXAMPLES:
            return False
        shown = ReducedCase(case, finding, 1, 1)
        corrected = partial(is_corrected, shown, self._work.arms, self._triage.corrections)
        if earlier.correction and outlasted(corrected, _ignore):
            return False
        self._store.replace_case(finding, case_id, case)
        return True

    def _count_plans(self, generator: str, seen: CaseObservation, counters: Counters) -> None:
        for step in seen.steps:
            if step.plan is not None:
                counters.reach.update(reach(step.plan, self._features))
                counters.count_plan(generator, plan_shape(step.plan))
        counters.reach.update(seen.reach)

    def _require(self, servers: list[int], case: str) -> None:
        """Raise ServerError unless these servers still run, because backends without a postmaster may do anything."""
        if self._postmasters() != servers:
            raise ServerError(f"a server went away during case {case}")

    def _log_traceback(self, what: str, error: Exception) -> Path:
        """Log an error of pgduel itself, and return the log.

        An oracle that fails on each case would fill the disk within weeks, so few errors of each place are logged.
        """
        log = self._work.directory / ERRORS
        place = _place(error)
        self._logged[place] += 1
        if self._logged[place] <= LOGGED:
            text = f"{what}\n{''.join(traceback.format_exception(error))}\n"
            if self._logged[place] == LOGGED:
                text += f"{LOGGED} errors of this worker at this place are logged; more are only counted\n\n"
            outlasted(partial(append, log, text), _ignore)
        return log

    def _postmasters(self) -> list[int]:
        """Return the process numbers of the servers. Raises ServerError if one is down."""
        return [running(arm) for arm in self._work.arms]

    def _reduce(self, job: Reduction) -> ReductionResult:
        """Reduce a finding on new servers, so that the campaign's servers do not crash, or disturb the reduction.

        An error is an outcome, too, also one of an oracle.
        """
        try:
            smallest = outlasted(partial(self._investigate, job.fingerprint), _ignore)
        except Exception as error:
            reason = str(error)
            if not isinstance(error, PgduelError):
                reason = f"{error!r} (see {self._log_traceback(f'reduction of finding {job.fingerprint}', error)})"
            later = f"{workdir.COMMAND} fuzz --resume {self._work.directory.name} tries again"
            return ReductionResult(f"finding {job.fingerprint} is not reduced: {reason} ({later})")
        often = "" if smallest.always else f" ({smallest.how_often})"
        script = self._triage.path(self._store.finding(job.fingerprint))
        return ReductionResult(f"finding {job.fingerprint}: {script}{often}")

    def _investigate(self, fingerprint: str) -> ReducedCase:
        """Reduce a finding and find the patch to blame, from where an earlier try ended."""
        # write the script again, because pgduel may have been killed before it did
        found = self._triage.write(self._store.finding(fingerprint))
        with fresh_servers(self._work.arms) as arms:
            return self._triage.investigate(found, arms)

    def _retry(self, job: Retry) -> RetryResult:
        """Judge a doubt's case again on servers of its own, until it is a finding or was tried often enough.

        Oracles that judge their own runs only, and had no doubt, are left out: their runs take most of the time. An
        error is an outcome, too, also one of an oracle, so that the next retry is another doubt's.
        """
        doubt = self._store.doubt(job.doubt)
        assert doubt is not None
        assigned = [each for each in self._assigned if _takes_part(each.oracle, doubt)]
        seen: Counter[str] = Counter()
        found: list[str] = []
        to_reduce: list[str] = []
        error = ""
        began, servers = _cpu_seconds(), 0.0
        try:
            with fresh_servers(self._work.arms) as arms, Executor(arms, "retry", stop=self._stop) as executor:
                while seen.total() < RETRIES and not found:
                    judged = judge_despite_errors(executor, assigned, doubt.case)
                    servers = server_cpu(arms)
                    found, to_reduce = self._store_findings(doubt.case_id, doubt.case, judged)
                    judged.raise_errors()
                    if not (judged.complete or found):
                        return RetryResult("", (), _cpu_seconds() - began, servers)
                    seen[_doubt_kind(doubt, judged)] += 1
                    if _is_settled(seen, judged):
                        break
        except TransientError:  # it is tried again later
            return RetryResult("", (), _cpu_seconds() - began, servers)
        except Exception as raised:
            if not isinstance(raised, PgduelError):
                self._log_traceback(f"retry of doubt {doubt.name}", raised)
            error = str(raised) if isinstance(raised, PgduelError) else repr(raised)
        outcome = outcome_text(seen, found, error)
        self._store.tried_again(doubt.name, outcome)
        line = f"doubt {doubt.name} ({doubt.oracle}: {doubt.reason}): {outcome}"
        return RetryResult(line, tuple(to_reduce), _cpu_seconds() - began, servers)


def _place(error: Exception) -> Hashable:
    """Return kind, line and files of an error. Its lines above the last one may differ with the syntax of each case."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    return type(error), frames[-1], frozenset(file for file, _ in frames)


def append(log: Path, text: str) -> None:
    """Append text to a log. Raises StorageError."""
    with workdir.writing(log), log.open("a") as lines:
        lines.write(text)


def log_killed(directory: Path, number: int | None = None) -> None:
    """Store and log the inputs during which workers of libFuzzer were killed: one of this number, or any.

    Raises StorageError.
    """
    for name in left_inputs(directory, number):
        append(directory / ERRORS, f"a worker was killed during case {name}\n")


def _ignore(_line: str) -> None:
    """Ignore a line about the store or its disk, which the campaign's own process prints, too."""


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its ended children, such as SQLsmith."""
    return sum(os.times()[:4])


def in_time(observations: Iterable[CaseObservation]) -> bool:
    """Return whether no step was ended by a time limit. If one was, chance decided what the case reached."""
    return not any(step.outcome is Outcome.TIMEOUT for seen in observations for step in seen.steps)


def _takes_part(oracle: Oracle, doubt: StoredDoubt) -> bool:
    """Return whether an oracle judges in the retries of a doubt."""
    return oracle.name == doubt.oracle or not oracle.judges_own_runs


def _is_settled(seen: Counter[str], judged: JudgedCase) -> bool:
    """Return whether further retries of a doubt are in vain: it recurs each time, or a server crashes.

    A crash explains the doubt and is a finding itself, and each one takes seconds.
    """
    return seen[SAME] == seen.total() == REPEATED or any(map(crash_report, judged.observations.values()))


def _doubt_kind(doubt: StoredDoubt, judged: JudgedCase) -> str:
    """Return SAME, or OTHER if the oracle did not repeat its verdict."""
    verdicts = (verdict for oracle, verdict in judged.verdicts if oracle == doubt.oracle)
    reasons = {verdict.reason for verdict in verdicts if isinstance(verdict, Inconclusive | Unstable)}
    return SAME if doubt.reason in reasons else OTHER
