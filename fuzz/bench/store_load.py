"""Load of a campaign's own process and its store: simulated workers, beside a real schedule, pool and store.

A small campaign on real servers records its cases once: their time, counters and doubts. Canaries give it findings. A
simulated worker returns and stores recorded results after the recorded time. So neither servers nor generators limit
the number of workers.
"""

import multiprocessing
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import count, islice, product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlencode

from sqlalchemy import func, select

from fuzz import workdir
from fuzz.bench.bench import BenchError
from fuzz.campaign.campaign import Campaign, Environment
from fuzz.campaign.canaries import plant
from fuzz.campaign.counters import Counters
from fuzz.campaign.database import Database
from fuzz.campaign.plan import Plan
from fuzz.campaign.pool import Done, LostJob, Pool
from fuzz.campaign.postgresql import PostgreSQL, Server
from fuzz.campaign.schedule import (
    Job,
    Range,
    RangeResult,
    Reduction,
    ReductionResult,
    Result,
    Retry,
    RetryResult,
    Schedule,
)
from fuzz.campaign.schema import OCCURRENCE
from fuzz.campaign.sqlite import FILE, SQLite
from fuzz.campaign.stop import Interrupt, Limits
from fuzz.campaign.store import Store, StoredDoubt
from fuzz.campaign.usage import Usage
from fuzz.campaign.worker import REPORTED, CaseWork, attached, server_cpu
from fuzz.engines.seeded import case_of
from fuzz.errors import PgduelError, ServerError, StorageError
from fuzz.execution.executor import Executor
from fuzz.execution.judging import assignments
from fuzz.generators.generator import Scale, all_generators
from fuzz.servers import Report
from fuzz.servers.arm import Arm, open_arms
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.cluster import Cluster
from fuzz.servers.settings import SUITES
from fuzz.triage.interestingness import ReducedCase
from fuzz.triage.triage import Triage
from oracles.model.case import Case, CaseId
from oracles.model.finding import Finding
from oracles.model.oracle import all_oracles

WORKERS: Final = tuple(2**power for power in range(9))
SHAPES: Final = (0, 100_000)  # distinct plan shapes that the campaign has counted before
ENOUGH: Final = 0.9  # share of the time in which workers run cases; below, the curve has bent
_FIGURES: Final = ("ranges", "cases", "findings", "busy", "driver")
_SEED: Final = 1
_CASES: Final = 3  # recorded cases of each generator
_FINDINGS: Final = 8  # recorded findings
_FINDING_EVERY: Final = 8  # cases of a generator between two that show a finding
_ARMS: Final = ArmOptions(arms=("a=upstream", "b=upstream"))
_DURABLE: Final = {"fsync": "on", "full_page_writes": "on"}
_OTHERS: Final = 20  # connections besides those of workers
_FORKING: Final = multiprocessing.get_context("forkserver")  # its processes share the memory of imported modules


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """The result of one case, and the CPU seconds that it took: the time on a machine with a processor per worker."""

    seconds: float
    counters: Counters
    doubts: tuple[StoredDoubt, ...]


@dataclass(frozen=True, slots=True)
class Recording:
    """The cases of each generator, and findings with cases of the usual size."""

    cases: Mapping[str, Sequence[RecordedCase]]
    findings: Sequence[tuple[Finding, Case]]

    def case(self, case_id: CaseId) -> RecordedCase:
        """Return the case in place of another one."""
        recorded = self.cases[case_id.generator]
        return recorded[case_id.index % len(recorded)]

    def finding(self, case_id: CaseId) -> tuple[Finding, Case] | None:
        """Return the finding of a case, and the case that is stored with it, or None."""
        number, rest = divmod(case_id.index, _FINDING_EVERY)
        return None if rest else self.findings[number % len(self.findings)]


@dataclass(frozen=True, slots=True)
class Load:
    """Figures of some simulated workers on one store. Rates are those of a second."""

    store: str
    shapes: int
    workers: int
    ranges: float  # results of ranges
    cases: float
    findings: float  # stored occurrences
    busy: float  # share of the workers' time in which they run cases; the rest is waiting for the store and for jobs
    driver: float  # share of one processor that the campaign's own process needs


@contextmanager
def recorded(most: int, report: Report) -> Iterator[tuple[Recording, str]]:
    """Yield a recording, and the URL of a database for the stores of `most` workers. Raises PgduelError."""
    with open_arms(_ARMS.specs(report), report, allow_same_build=True) as arms:
        recording = Recording(_cases(arms, report), _findings(arms, report))
        build = arms[0].build
    report("starting a server for the store")
    settings = SUITES | _DURABLE | {"max_connections": str(most + _OTHERS)}
    with Cluster(build, "store", settings=settings, directory=workdir.clusters_on_disk()) as server:
        yield recording, f"postgresql:///postgres?{urlencode(server.connect_kwargs)}"


def _cases(arms: Sequence[Arm], report: Report) -> dict[str, list[RecordedCase]]:
    with TemporaryDirectory() as directory:
        store = Store(Path(directory))
        store.begin(_plan(), {})
        work = CaseWork(attached(arms), store.directory, _SEED, "", {})
        with work.storing(store, 0, lambda: False) as do:
            do(Range(0, next(iter(_plan().generators)), 0, 1))  # makes the worker's databases
            cases = {}
            for generator in _plan().generators:
                report(f"recording cases: {generator}")
                cases[generator] = [
                    _recorded(arms, do, store, Range(0, generator, index, index + 1)) for index in range(_CASES)
                ]
            return cases


def _plan() -> Plan:
    generators = dict.fromkeys(all_generators(), 1)
    return Plan(_SEED, generators, None, None, stop_at_first=False, arms=_ARMS)


def _recorded(arms: Sequence[Arm], do: Callable[[Job], Result], store: Store, job: Range) -> RecordedCase:
    known, before = len(store.doubts()), server_cpu(arms)
    result = do(job)
    seconds = server_cpu(arms) - before
    if not isinstance(result, RangeResult) or not result.done:
        raise ServerError(f"case {job.first} of {job.generator} cannot be recorded: its servers went away; try again")
    return RecordedCase(seconds + result.counters.client_cpu, result.counters, store.doubts()[known:])


def _findings(arms: Sequence[Arm], report: Report) -> list[tuple[Finding, Case]]:
    """Return the findings of canaries. Each has a case of a generator, since those of canaries are small."""
    report("recording findings of planted bugs")
    with Executor(arms, "canaries") as executor:
        found = {
            finding.fingerprint: finding
            for assigned in assignments(all_oracles(), arms)
            for canary in islice(assigned.oracle.canaries, 1)
            for finding in plant(assigned.oracle, canary, executor, arms).findings
        }
    names = [*all_generators()]
    ids = (CaseId(_SEED, names[number % len(names)], number) for number in range(_FINDINGS))
    return [(finding, case_of(case_id, Scale())) for case_id, finding in zip(ids, found.values(), strict=False)]


@dataclass(frozen=True, slots=True)
class Place:
    """A store: a directory, and its schema in a database if there is a URL. It pickles."""

    directory: Path
    url: str = ""

    @property
    def store(self) -> str:
        """Return the name of the store's program."""
        return "postgresql" if self.url else "sqlite"

    def opened(self) -> Store:
        """Open the store."""
        number = int(self.directory.name)
        database: Database = PostgreSQL(_server(self.url), number) if self.url else SQLite(self.directory / FILE)
        return Store(self.directory, _ignore, database)


@cache
def _server(url: str) -> Server:
    return Server(url)


def _ignore(_line: str) -> None:
    """Ignore a line for the user of a campaign."""


@dataclass(frozen=True, slots=True)
class SimulatedWork:
    """The setup of simulated workers. It pickles."""

    recording: Recording
    place: Place

    @contextmanager
    def __call__(self, _number: int, stop: Callable[[], bool]) -> Iterator[Callable[[Job], Result]]:
        """Set up a worker with the store."""
        with closing(self.place.opened()) as store:
            yield _Simulated(self.recording, store, stop).do


@dataclass(frozen=True, slots=True)
class _Simulated:
    """A worker that executes nothing. It stores and returns recorded results."""

    recording: Recording
    store: Store
    stop: Callable[[], bool]

    def do(self, job: Job) -> Result:
        if isinstance(job, Reduction):
            found = self.store.finding(job.fingerprint)
            self.store.record_reduction(job.fingerprint, ReducedCase(found.case, found.finding, 3, 3), 1.0)
            return ReductionResult("")
        if isinstance(job, Retry):
            self.store.tried_again(job.doubt, "same doubt 20 times")
            return RetryResult("")
        return self._run(job)

    def _run(self, job: Range) -> RangeResult:
        """Return the results of as many cases as a real worker executes before it reports. See `_Worker._run`."""
        result, seconds = RangeResult(), 0.0
        for case_id in job.case_ids(_SEED):
            recorded = self.recording.case(case_id)
            time.sleep(recorded.seconds)
            seconds += recorded.seconds
            try:
                self._add_finding(case_id, result)
                for doubt in recorded.doubts:
                    self.store.add_doubt(replace(doubt, case_id=str(case_id)))
            except StorageError as error:
                result.fatal = str(error)
                break
            result.counters.add(recorded.counters)
            result.done += 1
            if result.found or self.stop() or seconds > REPORTED:
                break
        result.counters.server_cpu = seconds  # of sleep, which the pool reads
        return result

    def _add_finding(self, case_id: CaseId, result: RangeResult) -> None:
        if (found := self.recording.finding(case_id)) is None:
            return
        finding, case = found
        if self.store.add_finding(finding, str(case_id), case):
            Triage("", {}, self.store).write(self.store.finding(finding.fingerprint))
            result.found.append(finding.fingerprint)


class _MeasuredPool(Pool[Job, Result]):
    """A pool that notes the time of each result of a range."""

    def __init__(self, work: SimulatedWork, count: int) -> None:
        super().__init__(work, count, _FORKING)
        self.results: list[RangeResult] = []

    def wait(self, timeout: float) -> list[Done[Job, Result] | LostJob[Job]]:
        """Return the jobs that have ended, after at most `timeout` seconds without one."""
        ended = super().wait(timeout)
        if lost := [each for each in ended if isinstance(each, LostJob)]:
            raise ServerError(lost[0].line)
        self.results += [
            each.result for each in ended if isinstance(each, Done) and isinstance(each.result, RangeResult)
        ]
        return ended


class _Window:
    """The time that is measured: it begins when each worker has had time for a result, and ends the campaign.

    It is longer than `seconds` if no result arrives in that time.
    """

    def __init__(self, store: Store, pool: _MeasuredPool, workers: int, seconds: float) -> None:
        self._store = store
        self._pool = pool
        self._workers = workers
        self._seconds = seconds
        self._began: float | None = None
        self.interrupt = Interrupt()

    def show(self, _counters: Counters, _findings: object) -> None:
        """Begin or end the window. The campaign calls it after each step."""
        results = len(self._pool.results)
        if self._began is None:
            if results >= 2 * self._workers:
                self._first = self._state()
                self._began = time.monotonic()
        elif not self.interrupt and time.monotonic() > self._began + self._seconds and results > self._first[0]:
            self._length = time.monotonic() - self._began
            self._last = self._state()
            self.interrupt(signal.SIGINT, None)

    def _state(self) -> tuple[int, int, float]:
        """Return the numbers of results and of stored occurrences, and this process's CPU time."""
        (row,) = self._store.read(select(func.count().label("count")).select_from(OCCURRENCE))
        return len(self._pool.results), int(row["count"]), time.process_time()

    def load(self, store: str, shapes: int) -> Load:
        """Return the figures after the end."""
        (first, found_before, cpu_before), (last, found, cpu) = self._first, self._last
        results = self._pool.results[first:last]
        slept = sum(each.counters.server_cpu for each in results)
        return Load(
            store=store,
            shapes=shapes,
            workers=self._workers,
            ranges=len(results) / self._length,
            cases=sum(each.done for each in results) / self._length,
            findings=(found - found_before) / self._length,
            busy=slept / self._length / self._workers,
            driver=(cpu - cpu_before) / self._length,
        )


def measured(recording: Recording, place: Place, workers: int, shapes: int, seconds: float) -> Load:
    """Run a campaign with simulated workers in a new store, and return its figures. Raises PgduelError."""
    place.directory.mkdir()
    plan = _plan()
    work = SimulatedWork(recording, place)
    with closing(place.opened()) as store, _MeasuredPool(work, workers) as pool:
        store.begin(plan, {})
        store.progress(Counters(shapes=Counter({("before", f"{number:012x}"): 1 for number in range(shapes)})), {})
        window = _Window(store, pool, workers, seconds)
        environment = Environment(tuple, tuple, float, time.process_time, Usage, _ignore, window.show)
        Campaign(store, Schedule(plan.generators, None, {}), Limits(), pool, environment).run(window.interrupt)
    return window.load(place.store, shapes)


@dataclass(frozen=True, slots=True)
class FailedLoad:
    """A measurement that failed, and the reason."""

    store: str
    shapes: int
    workers: int
    reason: str


def loads(workers: Sequence[int], rounds: int, seconds: float, report: Report) -> Iterator[Load | FailedLoad]:
    """Yield the figures of each measurement: each number of workers, on both stores, which take turns.

    Raises PgduelError if there can be no measurement.
    """
    if not workers or min(workers) < 1:
        raise BenchError("there is no worker to simulate; give numbers from 1 on")
    _FORKING.set_forkserver_preload([__name__])
    with recorded(max(workers), report) as (recording, url), TemporaryDirectory(dir=workdir.benches()) as directory:
        numbers = count(1)
        for _, shapes, some, where in product(range(rounds), SHAPES, workers, ("", url)):
            report(f"simulating {some} workers")
            place = Place(Path(directory) / str(next(numbers)), where)
            try:
                yield measured(recording, place, some, shapes, seconds)
            except PgduelError as error:
                yield FailedLoad(place.store, shapes, some, str(error))


def medians(found: Iterable[Load]) -> list[Load]:
    """Return the median figures of each number of workers on each store."""
    rounds = defaultdict[tuple[str, int, int], list[Load]](list)
    for each in found:
        rounds[each.store, each.shapes, each.workers].append(each)
    return [_median(alike) for alike in rounds.values()]


def _median(alike: Sequence[Load]) -> Load:
    medians = {name: median(getattr(each, name) for each in alike) for name in _FIGURES}
    return replace(alike[0], **medians)


def bend(of_store: Sequence[Load]) -> Load | None:
    """Return the figures of the fewest workers that wait too much, of those on one store; None if none do."""
    return next((each for each in sorted(of_store, key=lambda each: each.workers) if each.busy < ENOUGH), None)
