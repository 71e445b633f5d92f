"""Campaign: the state machine that keeps workers busy until there is a reason to end.

Workers execute cases and reductions, the store keeps their results, `revive` restarts dead servers, and `show` displays
the state. Ranges that end are recorded together with their counts, in one transaction. Counts of a long campaign are a
large document. So after each record, the next one waits, and has the ranges that end meanwhile; a killed campaign runs
these again. Their findings and doubts are in the store before.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

from fuzz.campaign.counters import Counters, ProgressPoint, is_sample_due, sample_of
from fuzz.campaign.database import outlasted
from fuzz.campaign.known import fault_of
from fuzz.campaign.pool import Done, LostJob, Workers
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
from fuzz.campaign.stop import INTERRUPTED, Interrupt, Limits
from fuzz.campaign.store import Store
from fuzz.campaign.usage import UNKNOWN, Usage
from fuzz.errors import DiskFull, ServerError, StorageError
from fuzz.triage.findings import StoredFinding, untriaged

RETRY_EVERY = 500  # cases between retries of doubts
RETRY_SHARE = 0.1  # of the CPU time of cases, at most: one retry may take as long as 500 cases
TRIES = 3  # a job is given up when it has killed so many workers, a case when the servers went away so many times
OUTAGES = 20  # consecutive ranges without a single case after which the campaign ends
CPU_INTERVAL = 2.0  # seconds between readings of the servers' CPU time, which needs /proc for each process
USAGE_INTERVAL = 30.0  # seconds between readings of memory and disk space, which needs all files of the servers
TICK = 0.25  # seconds between readings of the clock
RECORDING = 0.05  # maximum share of the time for which the campaign waits for the store to record ranges
LONGEST_PAUSE = 10.0  # seconds between two records, without new ranges, or after a store that did not answer
KNOWN = "  a known fault"  # the line below that of a finding


@dataclass(frozen=True, slots=True)
class Environment:
    """The campaign's connections to servers and user, as plain functions."""

    revive: Callable[[], Sequence[str]]  # restarts dead arms, and returns a line for each. Raises ServerError
    require_room: Callable[[], object]  # raises DiskFull if a server's disk is full
    server_cpu: Callable[[], float]  # CPU seconds that the arms' servers have used so far
    client_cpu: Callable[[], float]  # CPU seconds of this process, without its workers
    usage: Callable[[], Usage]  # of the machine, by all processes of the campaign
    say: Callable[[str], None]  # prints a line for the user
    show: Callable[[Counters, Sequence[StoredFinding]], None]  # displays the state, several times a second
    edges: Callable[[], int] = int  # number of reached edges; 0 if the builds count none


@dataclass(frozen=True, slots=True)
class Clocks:
    """Seconds of elapsed time, and of CPU time of this process and of the servers."""

    wall: float
    client: float
    servers: float


class Campaign:
    """The execution of a schedule by a pool of workers, recorded in a store."""

    def __init__(
        self, store: Store, schedule: Schedule, limits: Limits, pool: Workers[Job, Result], environment: Environment
    ) -> None:
        self._store = store
        self._schedule = schedule
        self._limits = limits
        self._pool = pool
        self._environment = environment
        self._done = store.done()
        self._counted = store.counters  # in all parts of the campaign
        self._unrecorded: dict[int, int] = {}  # range number → number of executed cases
        self._samples: list[ProgressPoint] = []  # that are not recorded either
        self._sampled = -1  # cases at the last sample of this run
        self._record_at = 0.0  # time of the next record
        self._usage = UNKNOWN
        self._usage_at = 0.0  # time of its next reading
        self._outage: str | None = None  # reason why servers are to be revived after this step
        self._tries: Counter[Job] = Counter()
        self._outages = 0
        self._cases_since_retry = 0
        self._retry_seconds = 0.0
        self._failures = set[str]()  # kinds of failures of pgduel itself; the user sees one of each
        self._known = store.plan.known
        self._read_findings()
        waiting = [each.finding.fingerprint for each in untriaged(self._new_findings)]
        self._to_reduce = deque(waiting[: limits.reductions])
        self._postponed = deque(waiting[limits.reductions :])  # until others turn out to be known faults
        self._reducing = len(self._new_findings) - len(self._postponed)
        self._lasts_longer = limits.reducing < inf and limits.reached(self._counted, 0) is None
        self._limit_at: float | None = None  # time when a limit was reached, or all cases were done
        self._ended: Clocks | None = None
        self._last: Clocks | None = None
        self._began = self._read_clocks()

    def run(self, interrupt: Interrupt) -> str:
        """Run until a limit, the end of the schedule or an interrupt; return the reason for the end in a few words."""
        why = None
        self._record()
        while why is None:
            self._fill()
            # without any worker, there is neither a job nor an idle worker
            why = self._step(interrupt) if self._pool.jobs or not self._pool.idle else "all cases done"
        self._pool.stop()
        if why == INTERRUPTED and self._pool.jobs:
            self._environment.say("interrupted: running cases end first; another Ctrl-C kills them")
        while any(isinstance(job, Range) for job in self._pool.jobs):
            self._step(interrupt)
        self._sampled = -1
        self._record()
        self._ended = self._read_clocks()
        self._limit_at = self._limit_at or time.monotonic()
        if self._to_reduce:
            self._environment.say(f"reducing {len(self._to_reduce)} findings")
        while (self._to_reduce or self._pool.jobs) and not interrupt:
            if not self._may_reduce():
                self._environment.say(f"reductions are cut off after {self._limits.reducing / 60:g} minutes")
                break
            self._fill_reductions(at_once=self._limits.reductions)
            self._step(interrupt)
        return INTERRUPTED if interrupt else why

    def _step(self, interrupt: Interrupt) -> str | None:
        for ended in self._pool.wait(TICK):
            self._take(ended)
        if self._is_record_due():
            self._record()
        self._revive()
        counters = self._counters()
        self._environment.show(counters, self._findings)
        return INTERRUPTED if interrupt else self._reached(counters)

    def _reached(self, counters: Counters) -> str | None:
        """Return the reason why no more cases are executed, or None.

        Where another run follows, the workers that reduce nothing execute cases until the last reductions end.
        """
        why = self._limits.reached(counters, len(self._new_findings))
        if why is None or not self._lasts_longer:
            return why
        self._limit_at = self._limit_at or time.monotonic()
        reducing = self._to_reduce or any(isinstance(job, Reduction) for job in self._pool.jobs)
        return None if reducing and self._may_reduce() else why

    def _may_reduce(self) -> bool:
        """Return whether the reductions after the limit of the cases have any time left."""
        return self._limit_at is None or time.monotonic() - self._limit_at <= self._limits.reducing

    def _is_record_due(self) -> bool:
        """Return whether it is time for a record: at once in an outage, and after a while also without new ranges.

        Workers wait without a word for a store that cannot be written, so the campaign has to notice it.
        """
        late = time.monotonic() - self._record_at
        return late >= LONGEST_PAUSE or bool(self._unrecorded and (self._outage is not None or late >= 0))

    def _read_findings(self) -> None:
        """Read all findings, and those that are no known faults."""
        self._findings = self._store.findings()
        self._new_findings = [each for each in self._findings if not self._is_known(each)]

    def _fill(self) -> None:
        # the other workers continue fuzzing, but shall not begin a run's last reductions one by one
        self._fill_reductions(at_once=1 if self._limit_at is None else self._limits.reductions)
        self._fill_retry()
        while self._pool.idle and (job := self._schedule.next()) is not None:
            self._pool.submit(job)
        self._fill_reductions(at_once=self._limits.reductions)  # if there are no cases left

    def _fill_retry(self) -> None:
        """Submit a retry of the oldest doubt that was not tried again, if it is time and no other is under way."""
        retrying = any(isinstance(job, Retry) for job in self._pool.jobs)
        if self._cases_since_retry < RETRY_EVERY or retrying or not self._pool.idle:
            return
        if self._retry_seconds > RETRY_SHARE * self._counters().cpu_seconds:
            return
        self._cases_since_retry = 0
        if untried := self._store.untried_doubt():
            self._pool.submit(Retry(untried.name))

    def _fill_reductions(self, at_once: int) -> None:
        running = sum(isinstance(job, Reduction) for job in self._pool.jobs)
        while self._to_reduce and self._pool.idle and running < at_once:
            fingerprint = self._to_reduce.popleft()
            self._store.record_progress(fingerprint, self._store.finding(fingerprint).least)  # so it counts as tried
            self._pool.submit(Reduction(fingerprint))
            running += 1

    def _take(self, ended: Done[Job, Result] | LostJob[Job]) -> None:
        if isinstance(ended, LostJob):
            self._take_death(ended)
        elif isinstance(ended.result, RangeResult) and isinstance(ended.job, Range):
            self._take_range(ended.job, ended.result)
        elif isinstance(ended.result, ReductionResult) and isinstance(ended.job, Reduction):
            self._take_reduction(ended.job, ended.result)
        elif isinstance(ended.result, RetryResult):
            self._take_retry(ended.result)

    def _take_reduction(self, job: Reduction, result: ReductionResult) -> None:
        """Let another finding be reduced if this one turned out to be a known fault."""
        self._environment.say(result.note)
        self._read_findings()
        if any(each.finding.fingerprint == job.fingerprint and self._is_known(each) for each in self._findings):
            self._environment.say(KNOWN)
            if self._postponed:
                self._to_reduce.append(self._postponed.popleft())
            else:
                self._reducing -= 1

    def _is_known(self, found: StoredFinding) -> bool:
        return fault_of(found, self._known) is not None

    def _take_retry(self, result: RetryResult) -> None:
        self._retry_seconds += result.client_cpu + result.server_cpu
        self._counted.client_cpu += result.client_cpu
        self._counted.server_cpu += result.server_cpu
        if result.note:
            self._environment.say(result.note)
        self._read_findings()
        self._queue(result.found)

    def _take_death(self, died: LostJob[Job]) -> None:
        self._environment.say(died.line)
        job = died.job
        self._tries[job] += 1
        given_up = self._tries[job] == TRIES
        if isinstance(job, Reduction):
            if given_up:
                self._environment.say(f"finding {job.fingerprint} is not reduced: that killed {TRIES} workers")
            else:
                self._to_reduce.appendleft(job.fingerprint)
            return
        if isinstance(job, Retry):
            if given_up:
                self._store.tried_again(job.doubt, f"killed {TRIES} workers")
            return
        if not given_up:
            self._schedule.give_back(job)
            return
        self._environment.say(f"cases {job.first} to {job.end - 1} of {job.generator} killed {TRIES} workers: given up")
        result = RangeResult(done=job.end - job.first)
        for _ in range(result.done):
            result.counters.failed(job.generator, "worker died")
        self._take_range(job, result)

    def _take_range(self, job: Range, result: RangeResult) -> None:
        if result.fatal is not None:
            raise StorageError(result.fatal)
        in_vain = result.outage is not None and not self._waited_for_room() and not result.done
        self._outages = self._outages + 1 if in_vain else 0
        if in_vain:
            self._take_outage(job, result)
        self._schedule.give_back(job.after(result.done))
        self._counted.add(result.counters)
        self._cases_since_retry += result.done
        for kind, line in result.failures.items():
            if kind not in self._failures:
                self._failures.add(kind)
                self._environment.say(line)
        self._done[job.number] = self._unrecorded[job.number] = self._done.get(job.number, 0) + result.done
        if result.found:
            self._read_findings()
            self._queue(result.found)
        self._sample()
        self._outage = result.outage or self._outage

    def _waited_for_room(self) -> bool:
        """Return whether a server's disk was full. Then there is room again, or DiskFull is raised after a while."""
        try:
            self._environment.require_room()
        except DiskFull:
            outlasted(self._environment.require_room, self._environment.say)
            return True
        return False

    def _take_outage(self, job: Range, result: RangeResult) -> None:
        """Give up the first case of the range if it could not be executed in several tries."""
        self._tries[job] += 1
        if self._tries[job] == TRIES:
            self._environment.say(f"case {job.first} of {job.generator} is given up: {result.outage}")
            result.counters.failed(job.generator, "servers went away")
            result.done = 1

    def _queue(self, found: Sequence[str]) -> None:
        for each in self._findings:
            if each.finding.fingerprint in found:
                self._environment.say(f"finding {each.finding.fingerprint}: {each.finding.summary}")
                if self._is_known(each):
                    self._environment.say(KNOWN)
                elif self._reducing < self._limits.reductions:
                    self._reducing += 1
                    self._to_reduce.append(each.finding.fingerprint)
                else:
                    self._postponed.append(each.finding.fingerprint)
                    most = self._limits.reductions
                    self._environment.say(f"  not reduced now: a run reduces at most {most} findings")

    def _revive(self) -> None:
        outage, self._outage = self._outage, None
        if outage is None:
            return
        if self._outages >= OUTAGES:
            raise ServerError(f"the servers do not stay up: {outage}")
        for line in self._environment.revive():
            self._environment.say(line)

    def _record(self) -> None:
        """Record counters, and the ranges and samples since the last record."""
        self._sample()
        began = time.monotonic()
        self._store.progress(self._counters(), self._unrecorded, self._samples)
        self._unrecorded, self._samples = {}, []
        now = time.monotonic()
        self._record_at = now + min((now - began) * (1 / RECORDING - 1), LONGEST_PAUSE)

    def _sample(self) -> None:
        """Take a sample every few cases, also at the start and the end of a run."""
        if is_sample_due(self._sampled, self._counted.cases.total()):
            self._read_usage()
            edges = self._environment.edges()
            self._samples.append(
                sample_of(self._counters(), len(self._findings), time.time(), self._usage, edges=edges)
            )
            self._sampled = self._samples[-1].cases

    def _read_usage(self) -> None:
        now = time.monotonic()
        if now >= self._usage_at:
            self._usage, self._usage_at = self._environment.usage(), now + USAGE_INTERVAL

    def _counters(self) -> Counters:
        """Return the present counters. Their counts are the campaign's own, not copies."""
        now, counted = self._ended or self._read_clocks(), self._counted
        return replace(
            counted,
            seconds=counted.seconds + now.wall - self._began.wall,
            client_cpu=counted.client_cpu + now.client - self._began.client,
            server_cpu=counted.server_cpu + now.servers - self._began.servers,
        )

    def _read_clocks(self) -> Clocks:
        wall = time.monotonic()
        if self._last is None or wall - self._last.wall > CPU_INTERVAL:
            self._last = Clocks(wall, self._environment.client_cpu(), self._environment.server_cpu())
        return replace(self._last, wall=wall)
