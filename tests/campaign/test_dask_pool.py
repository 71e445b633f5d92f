"""Tests of campaigns on a Dask cluster with real servers: the same findings as without it, and lost workers."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from cryptography import x509

from fuzz import workdir
from fuzz.campaign import dask_pool, remote
from fuzz.campaign.campaign import Campaign, Environment
from fuzz.campaign.catalog import opened
from fuzz.campaign.counters import Counters
from fuzz.campaign.dask_pool import LOCAL, DaskPool, connected, remote_work, security
from fuzz.campaign.plan import Plan
from fuzz.campaign.pool import Pool, Workers
from fuzz.campaign.remote import Answer, Subject
from fuzz.campaign.schedule import Job, RangeResult, Result, Schedule
from fuzz.campaign.stop import Interrupt, Limits
from fuzz.campaign.store import Store
from fuzz.campaign.usage import Usage
from fuzz.campaign.worker import ERRORS, CaseWork, attached
from fuzz.cli.options import facts_of
from fuzz.errors import DiskFull, ServerError
from fuzz.servers.arm import Arm, ArmSpec, open_arms
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.base import Base
from fuzz.servers.flavor import FLAVORS
from fuzz.servers.series import series_from_files
from fuzz.triage.findings import StoredFinding
from fuzz.triage.triage import DIRECTORY as REPRODUCERS
from tests.cli.command import addresses_of
from tests.injected_bugs.injected_bug import bug_of, sound_patches
from tests.servers.disk import fill, of_limited_size

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

BUG = workdir.PROJECT / "tests" / "injected_bugs" / "group_keeps_right_count.patch"
CASES = 12


@pytest.fixture(scope="module")
def specs(base: Base) -> tuple[ArmSpec, ...]:
    sound = sound_patches(bug_of(BUG))
    series = {"sound": sound, "bugged": [*sound, BUG]}
    return tuple(ArmSpec(name, base, series_from_files(files), FLAVORS["assert"]) for name, files in series.items())


@pytest.fixture(scope="module")
def arms(specs: tuple[ArmSpec, ...]) -> Iterator[tuple[Arm, ...]]:
    with open_arms(specs, print) as arms:
        yield arms


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Yield the client of a cluster with two workers on this machine."""
    with connected(LOCAL, 2) as client:
        yield client


class _Campaign:
    """A campaign of a few cases that does not reduce its findings."""

    def __init__(self, directory: Path, specs: tuple[ArmSpec, ...], arms: tuple[Arm, ...]) -> None:
        self.directory = directory
        self.messages: list[str] = []
        self.shown: Callable[[Counters], None] = lambda _: None
        self.said: Callable[[str], None] = lambda _: None
        self._specs = specs
        self._arms = arms

    def _say(self, line: str) -> None:
        self.messages.append(line)
        self.said(line)

    def _run(self, open_pool: Callable[[Store, Plan], AbstractContextManager[Workers[Job, Result]]]) -> None:
        environment = Environment(list, list, float, float, Usage, self._say, lambda counters, _: self.shown(counters))
        plan = Plan(1, {"set_operations": 1}, None, CASES, stop_at_first=False, arms=ArmOptions())
        self.directory.mkdir(exist_ok=True)
        with opened(self.directory) as store:
            store.begin(plan, facts_of(self._specs, self._arms))
            with open_pool(store, plan) as pool:
                schedule = Schedule(plan.generators, plan.cases, store.done())
                self.why = Campaign(store, schedule, Limits(reductions=0), pool, environment).run(Interrupt())
            self.findings = {each.finding.fingerprint: (each.count, each.finding) for each in store.findings()}
            self.scripts = [each.reproducer for each in store.findings()]
            self.cases = store.counters.cases.total()
            self.statements = store.counters.statements_judged
            self.server_cpu = store.counters.server_cpu

    def on_dask(self, client: Any) -> None:
        def opening(store: Store, plan: Plan) -> DaskPool:
            work = remote_work(store, plan, self._specs, same_build=False)
            return DaskPool(client, work, store, self._say, bool)

        self._run(opening)

    def here(self) -> None:
        arms = attached(self._arms)
        self._run(lambda store, plan: Pool(CaseWork(arms, self.directory, plan.seed, "", store.arms), 2))


def test_a_cluster_of_its_own_listens_on_the_loopback_interface_only(client: Any) -> None:
    client.wait_for_workers(2)
    assert addresses_of(psutil.Process()) == {"127.0.0.1"}


def test_a_cluster_of_its_own_refuses_the_certificates_of_others(client: Any) -> None:
    with pytest.raises(OSError, match="TLS certificate does not match"):
        type(client)(client.scheduler.address, timeout=3, security=security(), set_as_default=False)


def test_certificates_remain_valid_if_the_clock_is_set_back() -> None:
    certificate = x509.load_pem_x509_certificate(security().tls_worker_cert.encode())
    assert certificate.not_valid_before_utc < datetime.now(UTC) - timedelta(days=365)


@pytest.mark.long
def test_a_cluster_finds_what_local_processes_find(
    tmp_path: Path, specs: tuple[ArmSpec, ...], arms: tuple[Arm, ...], client: Any
) -> None:
    here, there = _Campaign(tmp_path / "1", specs, arms), _Campaign(tmp_path / "2", specs, arms)
    here.here()
    there.on_dask(client)
    assert here.findings
    assert there.findings == here.findings
    assert (there.why, there.cases, there.statements) == (here.why, CASES, here.statements)
    assert there.server_cpu > 0
    assert all(path is not None and path.parent.parent == there.directory and path.exists() for path in there.scripts)
    assert sum(line.endswith(" is ready") for line in there.messages) in (1, 2)


@pytest.mark.long
def test_the_job_of_a_killed_worker_runs_again(
    tmp_path: Path, specs: tuple[ArmSpec, ...], arms: tuple[Arm, ...], client: Any
) -> None:
    whole, shortened = _Campaign(tmp_path / "1", specs, arms), _Campaign(tmp_path / "2", specs, arms)
    whole.on_dask(client)
    workers = list(client.run(os.getpid).values())

    def kill(counters: Counters) -> None:
        if workers and counters.cases.total() > 0:
            os.kill(workers.pop(), signal.SIGKILL)
            workers.clear()

    shortened.shown = kill
    shortened.on_dask(client)
    assert (shortened.findings, shortened.cases) == (whole.findings, CASES)
    assert sum("was lost; its job is assigned again" in line for line in shortened.messages) == 1


def test_what_a_worker_found_is_stored_although_it_cannot_continue(
    tmp_path: Path, specs: tuple[ArmSpec, ...], arms: tuple[Arm, ...], client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk of each worker is full at the end of its first job with a finding."""

    def execute_on_full_disk(name: str, job: Job, subject: Subject, explained: Sequence[StoredFinding]) -> Answer:
        answer = remote.execute(name, job, subject, explained)  # in the worker, where it is the original
        assert answer is not None
        assert isinstance(answer.result, RangeResult)
        fatal = "cannot write errors.log (disk full)" if answer.found else None
        return replace(answer, result=replace(answer.result, fatal=fatal))

    monkeypatch.setattr(remote, "execute", execute_on_full_disk)
    monkeypatch.setattr(dask_pool, "_EMPTY", 1.0)
    campaign = _Campaign(tmp_path / "1", specs, arms)
    with pytest.raises(ServerError, match=r"no worker of .* can run this campaign: .* \(disk full\)"):
        campaign.on_dask(client)
    with opened(campaign.directory) as store:
        (found, *_) = store.findings()
    assert found.reproducer is not None
    assert found.reproducer.exists()
    assert any(line.startswith(f"finding {found.finding.fingerprint}: ") for line in campaign.messages)


def test_reproducers_and_the_log_of_errors_wait_for_room_on_a_full_disk(
    tmp_path: Path, specs: tuple[ArmSpec, ...], arms: tuple[Arm, ...], client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each job has an error. There is room again after each failure, and no more when one file is written."""

    def execute_with_error(name: str, job: Job, subject: Subject, explained: Sequence[StoredFinding]) -> Answer:
        answer = remote.execute(name, job, subject, explained)  # in the worker, where it is the original
        assert answer is not None
        return replace(answer, errors=f"error in {job}\n")

    monkeypatch.setattr(remote, "execute", execute_with_error)
    campaign = _Campaign(tmp_path / "1", specs, arms)
    with of_limited_size(campaign.directory / REPRODUCERS, 4) as disk:
        (campaign.directory / ERRORS).symlink_to(disk / ERRORS)
        fill(disk)

        def change_room(line: str) -> None:
            if "trying again for 10 minutes" in line:
                (disk / "filling").unlink()
            elif line == DiskFull.passed:
                fill(disk)

        campaign.said = change_room
        campaign.on_dask(client)
        assert campaign.scripts
        assert all(path is not None and path.exists() for path in campaign.scripts)
        assert "error in Range" in (campaign.directory / ERRORS).read_text()
    assert campaign.cases == CASES
    for file in (ERRORS, ".sql"):
        assert any(f"{file} (No space left on device); make room there; " in line for line in campaign.messages)
