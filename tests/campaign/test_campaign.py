"""Tests of the campaign's state machine with real worker processes that simulate cases."""

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from fuzz.campaign import campaign
from fuzz.campaign.campaign import Campaign, Environment
from fuzz.campaign.catalog import new_campaign, opened
from fuzz.campaign.counters import SAMPLED_EVERY, Counters, ProgressPoint, sample_of
from fuzz.campaign.known import KnownFault
from fuzz.campaign.plan import Plan
from fuzz.campaign.pool import Pool
from fuzz.campaign.schedule import (
    RANGE_SIZE,
    Job,
    RangeResult,
    Reduction,
    ReductionResult,
    Result,
    Retry,
    RetryResult,
    Schedule,
)
from fuzz.campaign.stop import Interrupt, Limits
from fuzz.campaign.store import Store, doubt_of
from fuzz.campaign.usage import Usage
from fuzz.errors import DiskFull, ServerError
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.cluster import Cluster
from fuzz.servers.series import Patch
from fuzz.triage.blame import Blame
from fuzz.triage.interestingness import ReducedCase
from oracles.model.case import Case, CaseId
from oracles.model.finding import Finding
from oracles.model.oracle import Unstable
from tests.forking import FORKING

ALWAYS = -1
FINDING = Finding("result", ("master", "patched"), "rows", 0, "rows differ", "", "")


@dataclass(frozen=True)
class _SimulatedWork:
    """Work that counts cases. Fields are indexes of cases with an event, which occurs once or always.

    `bad` has a finding. `doubtful` has a doubt, which becomes a finding when it is tried again. `deadly` kills the
    worker. At `away` the servers are gone.
    """

    directory: Path
    bad: int | None = None
    doubtful: int | None = None
    deadly: int | None = None
    away: int | None = None
    once: bool = True
    distinct: bool = False  # whether findings of other generators are other findings
    hidden: str = ""  # the generator whose finding a correction hides
    dies_reducing: bool = False
    dies_retrying: bool = False
    reducing_seconds: float = 0.0
    failing: bool = False
    retry_seconds: float = 0.0
    variables: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def _first_time(self) -> bool:
        try:
            (self.directory / "happened").touch(exist_ok=not self.once)  # at once: two workers may get here together
        except FileExistsError:
            return False
        return True

    def _reduced(self, job: Reduction, store: Store) -> ReductionResult:
        if self.dies_reducing and self._first_time():
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.reducing_seconds)
        found = store.finding(job.fingerprint)
        store.record_reduction(job.fingerprint, ReducedCase(Case("a", (), ()), found.finding, 3, 3), 1.0)
        if found.finding.origin == self.hidden:
            store.record_blame(job.fingerprint, Blame("a", (), ((0, True),), correction="fix.patch"))
        return ReductionResult(f"reduced {job.fingerprint}")

    def _retried(self, job: Retry, store: Store) -> RetryResult:
        if self.dies_retrying and self._first_time():
            os.kill(os.getpid(), signal.SIGKILL)
        store.tried_again(job.doubt, "found")
        store.add_finding(FINDING, "1/a/0", Case("a", (), ()))
        return RetryResult(f"doubt {job.doubt}: found", (FINDING.fingerprint,), self.retry_seconds)

    def _failures(self, case_id: CaseId) -> dict[str, str]:
        return {f"{case_id.generator}: ValueError": f"failed on {case_id}"} if self.failing else {}

    @contextmanager
    def __call__(self, _number: int, stop: Callable[[], bool]) -> Iterator[Callable[[Job], Result]]:
        def work(job: Job) -> Result:
            if isinstance(job, Reduction):
                return self._reduced(job, store)
            if isinstance(job, Retry):
                return self._retried(job, store)
            result = RangeResult()
            for case_id in job.case_ids(1):
                if case_id.index == self.deadly and self._first_time():
                    os.kill(os.getpid(), signal.SIGKILL)
                if self.away in (case_id.index, ALWAYS) and self._first_time():
                    result.outage = "postmaster is gone"
                    break
                found = replace(FINDING, origin=job.generator) if self.distinct else FINDING
                if case_id.index == self.bad and store.add_finding(found, str(case_id), Case("a", (), ())):
                    result.found.append(found.fingerprint)
                if case_id.index == self.doubtful:
                    store.add_doubt(doubt_of("result", Unstable("rows"), str(case_id), Case("a", (), ())))
                result.failures |= self._failures(case_id)
                result.done += 1
                result.counters.cases[job.generator] += 1
                if stop():
                    break
            return result

        os.environ.update(self.variables)
        with opened(self.directory, lambda _: None) as store:
            yield work


class _Run:
    """A campaign in a directory, with its messages."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.messages: list[str] = []
        self.shown: Callable[[Counters], None] = lambda _: None
        self.require_room: Callable[[], object] = lambda: None
        self.revived = 0

    def _revive(self) -> list[str]:
        self.revived += 1
        return ["patched was restarted"]

    def __call__(
        self,
        work: _SimulatedWork,
        cases: int | None,
        limits: Limits,
        interrupt: Interrupt | None = None,
        known: tuple[KnownFault, ...] = (),
    ) -> str:
        environment = Environment(
            self._revive,
            self.require_room,
            lambda: 0.0,
            lambda: 0.0,
            lambda: Usage(1, 2, 3),
            self.messages.append,
            lambda counters, _: self.shown(counters),
        )
        with opened(self.directory, self.messages.append) as store, Pool(work, 2, FORKING) as pool:
            plan = Plan(1, {"a": 1, "b": 1}, None, cases, stop_at_first=False, arms=ArmOptions(), known=known)
            store.begin(plan, {})
            schedule = Schedule(plan.generators, cases, store.done())
            why = Campaign(store, schedule, limits, pool, environment).run(
                Interrupt() if interrupt is None else interrupt
            )
            self.cases = store.counters.cases.total()
            self.failed = store.counters.of_kind("inconclusive")
            self.findings = store.findings()
            self.samples = store.samples()
        return why


@pytest.fixture
def run(campaigns: Path) -> _Run:
    return _Run(new_campaign())


def test_runs_all_cases_and_reduces_findings(run: _Run) -> None:
    assert run(_SimulatedWork(run.directory, bad=9), 50, Limits()) == "all cases done"
    assert run.cases == 50
    (found,) = run.findings
    assert (found.count, found.reduced) == (2, True)  # case 9 of both generators
    assert any("rows differ" in line for line in run.messages)


@pytest.mark.parametrize("once", [True, False])
def test_a_reduction_whose_worker_dies_is_repeated_a_limited_number_of_times(run: _Run, *, once: bool) -> None:
    run(_SimulatedWork(run.directory, bad=1, once=once, dies_reducing=True), 10, Limits())
    assert run.findings[0].reduced == once
    assert run.findings[0].smallest is not None  # so it counts as tried
    abandoned = f"finding {FINDING.fingerprint} is not reduced: that killed 3 workers"
    assert (abandoned in run.messages) != once


def test_a_reduction_that_takes_too_long_is_cut_off(run: _Run) -> None:
    work = _SimulatedWork(run.directory, bad=1, reducing_seconds=3600)
    assert run(work, None, Limits(seconds=0.5, reducing=0.5)) == "time is up"
    assert not run.findings[0].reduced
    assert any(line.startswith("reductions are cut off after") for line in run.messages)


def test_cases_go_on_beside_the_last_reduction_if_another_run_follows(run: _Run) -> None:
    work = _SimulatedWork(run.directory, bad=1, reducing_seconds=2)
    assert run(work, None, Limits(seconds=0.5, reducing=60)) == "time is up"
    assert run.findings[0].reduced
    late = [sample.cases for sample in run.samples if sample.seconds > 1]
    assert late[-1] > late[0]


def test_an_interrupt_in_the_last_reduction_ends_the_campaign(run: _Run) -> None:
    interrupt = Interrupt()
    work = _SimulatedWork(run.directory, bad=1, reducing_seconds=3600)
    threading.Timer(3.0, interrupt, (signal.SIGINT, None)).start()
    assert run(work, None, Limits(seconds=0.5), interrupt) == "interrupted"


def test_doubts_are_tried_again_and_may_become_findings(run: _Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "RETRY_EVERY", 20)
    run(_SimulatedWork(run.directory, doubtful=1), 100, Limits())
    with opened(run.directory) as store:
        assert "found" in [doubt.outcome for doubt in store.doubts()]
    (found,) = run.findings
    assert found.reduced


@pytest.mark.parametrize("once", [True, False])
def test_a_doubt_is_settled_only_after_it_killed_several_workers(
    run: _Run, monkeypatch: pytest.MonkeyPatch, *, once: bool
) -> None:
    monkeypatch.setattr(campaign, "RETRY_EVERY", 20)
    interrupt, outcomes = Interrupt(), set[str]()

    def end_once_settled(_: Counters) -> None:
        with opened(run.directory) as store:
            outcomes.update(filter(None, (doubt.outcome for doubt in store.doubts())))
        if outcomes and not interrupt:
            interrupt(signal.SIGINT, None)

    run.shown = end_once_settled
    run(_SimulatedWork(run.directory, doubtful=1, dies_retrying=True, once=once), None, Limits(), interrupt)
    assert outcomes == {"found" if once else "killed 3 workers"}


@pytest.mark.parametrize(("seconds", "tried"), [(0.0, 2), (1.0, 1)])
def test_retries_take_a_small_part_of_the_time(
    run: _Run, monkeypatch: pytest.MonkeyPatch, seconds: float, tried: int
) -> None:
    """Simulated cases take no time at all."""
    monkeypatch.setattr(campaign, "RETRY_EVERY", 20)
    run(_SimulatedWork(run.directory, doubtful=1, retry_seconds=seconds), 200, Limits())
    with opened(run.directory) as store:
        assert [doubt.outcome for doubt in store.doubts()].count("found") == tried
        assert store.counters.cpu_seconds == tried * seconds


def test_one_failure_of_each_kind_is_displayed(run: _Run) -> None:
    run(_SimulatedWork(run.directory, failing=True), 50, Limits())
    assert sorted(line.split("/")[1] for line in run.messages) == ["a", "b"]


def test_stops_at_the_first_finding(run: _Run) -> None:
    assert run(_SimulatedWork(run.directory, bad=1), None, Limits(at_first=True)) == "first finding"
    assert run.findings[0].reduced


def test_a_known_fault_neither_ends_a_campaign_nor_is_reduced(run: _Run) -> None:
    known = (KnownFault(oracle=FINDING.oracle, origin=FINDING.symptom),)
    assert run(_SimulatedWork(run.directory, bad=1), 30, Limits(at_first=True), known=known) == "all cases done"
    (found,) = run.findings
    assert (found.count, found.reduced) == (2, False)
    assert "  a known fault" in run.messages


def test_findings_of_an_earlier_run_are_reduced(run: _Run) -> None:
    with opened(run.directory) as earlier:
        earlier.add_finding(FINDING, "1/a/1", Case("a", (), ()))
        (found,) = earlier.findings()
    later = _Run(new_campaign())
    with opened(later.directory) as store:
        store.take_over(found)
        assert store.findings() == (replace(found, count=0),)
    later(_SimulatedWork(later.directory), 10, Limits())
    (reduced,) = later.findings
    assert (reduced.reduced, reduced.count) == (True, 0)


@pytest.mark.parametrize("hidden", ["", "a", "b"])
def test_a_finding_is_reduced_in_place_of_one_that_a_correction_hides(run: _Run, hidden: str) -> None:
    known = (KnownFault(correction=Patch("fix.patch", b"")),)
    work = _SimulatedWork(run.directory, bad=1, distinct=True, hidden=hidden)
    run(work, 30, Limits(reductions=1), known=known)
    reduced = {found.finding.origin for found in run.findings if found.reduced}
    assert len(run.findings) == 2
    assert len(reduced) == (2 if hidden in reduced else 1)  # whichever worker returns first


def test_stops_at_the_time_limit(run: _Run) -> None:
    assert run(_SimulatedWork(run.directory), None, Limits(seconds=0.5)) == "time is up"
    assert run.cases > 0


def test_an_interrupted_campaign_is_resumed_without_loss(run: _Run) -> None:
    interrupt = Interrupt()
    interrupt(signal.SIGINT, None)
    assert run(_SimulatedWork(run.directory), 60, Limits(), interrupt) == "interrupted"
    assert 0 < run.cases < 60
    assert run(_SimulatedWork(run.directory), 60, Limits()) == "all cases done"
    assert run.cases == 60
    cases = [sample.cases for sample in run.samples]
    assert (cases[0], cases[-1], sorted(cases)) == (0, 60, cases)


def test_progress_is_sampled_at_numbers_of_cases(run: _Run) -> None:
    run(_SimulatedWork(run.directory, bad=9), 200, Limits())
    assert (run.samples[0].cases, run.samples[-1].cases) == (0, 200)
    assert 3 < len(run.samples) <= 200 / SAMPLED_EVERY + 2
    assert (run.samples[0].findings, run.samples[-1].findings) == (0, 1)
    assert run.samples[-1].seconds >= run.samples[0].seconds >= 0
    assert {sample.usage for sample in run.samples} == {Usage(1, 2, 3)}


def test_a_later_sample_replaces_one_of_as_many_cases(run: _Run) -> None:
    with opened(run.directory) as store:
        store.begin(Plan(1, {}, None, None, stop_at_first=False, arms=ArmOptions()), {})
        for edges in (3, 4):
            store.progress(Counters(), {}, [sample_of(Counters(), 0, 1.0, edges=edges)])
        (sample,) = store.samples()
    assert sample.edges == 4


def test_ranges_that_end_during_a_record_share_the_next_one(run: _Run, monkeypatch: pytest.MonkeyPatch) -> None:
    records: list[int] = []
    progress = Store.progress

    def slow(store: Store, counters: Counters, done: Mapping[int, int], samples: Sequence[ProgressPoint] = ()) -> None:
        time.sleep(0.2)
        records.append(len(done))
        progress(store, counters, done, samples)

    monkeypatch.setattr(Store, "progress", slow)
    run(_SimulatedWork(run.directory), 800, Limits())
    assert run.cases == 800
    assert sum(records) == 2 * (4 + 392 // RANGE_SIZE)  # ranges: each generator has four of 8 cases together
    assert len(records) < 50


def test_the_second_interrupt_ends_at_once() -> None:
    interrupt = Interrupt()
    interrupt(signal.SIGINT, None)
    with pytest.raises(KeyboardInterrupt):
        interrupt(signal.SIGINT, None)


def test_a_worker_that_dies_once_costs_no_case(run: _Run) -> None:
    assert run(_SimulatedWork(run.directory, deadly=3), 20, Limits()) == "all cases done"
    assert run.cases == 20
    assert any("was replaced" in line for line in run.messages)


def test_cases_that_kill_every_worker_are_abandoned(run: _Run) -> None:
    assert run(_SimulatedWork(run.directory, deadly=20, once=False), 48, Limits()) == "all cases done"
    assert run.cases == 48
    assert run.failed == 16  # the range with case 20, of both generators
    assert sum("given up" in line for line in run.messages) == 2


def test_dead_servers_are_restarted_and_the_range_continues(run: _Run) -> None:
    assert run(_SimulatedWork(run.directory, away=3), 20, Limits()) == "all cases done"
    assert run.cases == 20
    assert run.revived == 1
    assert "patched was restarted" in run.messages


def test_a_full_disk_of_a_server_costs_no_case(run: _Run) -> None:
    full = iter([True] * 3)

    def require_room() -> None:
        if next(full, False):
            raise DiskFull("the disk of server patched is full")

    run.require_room = require_room
    assert run(_SimulatedWork(run.directory, away=3), 20, Limits()) == "all cases done"
    assert (run.cases, run.failed) == (20, 0)
    told = [line for line in run.messages if "full" in line or "room" in line]
    assert told == ["the disk of server patched is full; trying again for 10 minutes", "there is room again"]


def test_a_case_that_always_loses_its_servers_is_abandoned(run: _Run) -> None:
    assert run(_SimulatedWork(run.directory, away=5, once=False), 20, Limits()) == "all cases done"
    assert (run.cases, run.failed) == (20, 2)  # case 5 of both generators
    assert any("case 5 of a is given up: postmaster is gone" in line for line in run.messages)


def test_servers_that_do_not_stay_up_end_the_campaign(run: _Run) -> None:
    with pytest.raises(ServerError, match="do not stay up: postmaster is gone"):
        run(_SimulatedWork(run.directory, away=ALWAYS, once=False), 200, Limits())


@pytest.mark.servers
@pytest.mark.quick
def test_a_campaign_outlasts_the_kill_of_its_stores_server(
    store_server: Cluster, shared_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGDUEL_CAMPAIGNS", str(tmp_path))
    run, killed = _Run(new_campaign()), threading.Event()

    def kill(counters: Counters) -> None:
        if counters.cases.total() > 20 and not killed.is_set():
            killed.set()
            store_server.kill9()
            threading.Timer(2.0, store_server.start).start()

    run.shown = kill
    assert run(_SimulatedWork(run.directory, bad=50), 400, Limits()) == "all cases done"
    (found,) = run.findings
    assert (run.cases, found.count, found.reduced) == (400, 2, True)
    about_the_store = [line for line in run.messages if "the store" in line]
    assert re.fullmatch(r"the store .* does not answer \(.*\); .*; trying again for 10 minutes", about_the_store[0])
    assert about_the_store[1:] == ["the store answers again"]
