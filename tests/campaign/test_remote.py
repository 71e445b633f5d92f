"""Tests of a process that works for other machines: the campaigns that it accepts, its journal, its servers."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fuzz import workdir
from fuzz.campaign.catalog import opened
from fuzz.campaign.code_digest import code_digest
from fuzz.campaign.continuous import file_of, keep_plan
from fuzz.campaign.disk import note_build
from fuzz.campaign.plan import Plan
from fuzz.campaign.remote import Host, Journal, Preparation, RemoteWork
from fuzz.campaign.schedule import Range, RangeResult
from fuzz.campaign.store import KEPT, StoredDoubt, doubt_of
from fuzz.engines import seeded
from fuzz.servers import git
from fuzz.servers.arm import ArmSpec
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.base import Base
from fuzz.servers.build import Build
from fuzz.servers.flavor import FLAVORS
from fuzz.servers.series import Series
from fuzz.sources.source import UserInput
from fuzz.triage.findings import StoredFinding
from fuzz.triage.interestingness import ReducedCase
from oracles.model.case import Case
from oracles.model.finding import Finding
from oracles.model.oracle import Unstable
from tests.servers.crash import CRASH_OF_B

PLAN = Plan(1, {"set_operations": 1}, None, None, stop_at_first=False, arms=ArmOptions())
FINDING = Finding("result", ("a", "b"), "rows", 0, "rows differ", "", "")
CASE = Case("test", (), ())


def work(name: str = "one", plan: Plan = PLAN, specs: tuple[ArmSpec, ...] = (), key: str = "") -> RemoteWork:
    builds = {spec.name: key for spec in specs}
    return RemoteWork(name, "1", specs, builds, same_build=True, plan=plan, options="", records={}, code=code_digest())


def doubt(number: int) -> StoredDoubt:
    return doubt_of("result", Unstable("rows"), f"1/test/{number}", CASE)


def test_a_journal_keeps_the_writes_of_one_job(tmp_path: Path) -> None:
    journal = Journal(tmp_path, PLAN)
    assert journal.add_finding(FINDING, "1/test/0", CASE)
    assert not journal.add_finding(FINDING, "1/test/1", CASE)
    assert [journal.add_doubt(doubt(number)) for number in range(KEPT + 1)] == [True] * KEPT + [False]
    with opened(tmp_path) as store:
        assert [store.add_finding(*found) for found in journal.found] == [True, False]
        for write in journal.writes:
            write(store)
        assert store.doubts() == tuple(doubt(number) for number in range(KEPT))
    journal.begin(doubt(3))
    assert (journal.found, journal.writes, journal.doubt("")) == ([], [], doubt(3))


def test_a_doubt_whose_answer_was_lost_is_kept_when_its_case_runs_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path, PLAN)
    for number in range(KEPT + 1):
        journal.add_doubt(doubt(number))
    journal.begin(None)
    assert [journal.add_doubt(doubt(number)) for number in range(KEPT + 1)] == [True] * KEPT + [False]
    assert len(journal.writes) == KEPT


def test_another_case_takes_the_place_of_that_of_an_explained_finding(tmp_path: Path) -> None:
    """The campaign's findings come with each job, because other processes reduce and blame them."""
    journal = Journal(tmp_path, PLAN)
    assert journal.add_finding(FINDING, "1/test/0", CASE)
    explained = StoredFinding(
        FINDING, "1/test/0", CASE, 1, None, reduced=True, smallest=ReducedCase(CASE, FINDING, 0, 20)
    )
    journal.begin(None, (explained,))
    assert not journal.add_finding(FINDING, "1/test/1", CASE)
    assert journal.finding(FINDING.fingerprint).explained
    journal.replace_case(FINDING, "1/test/1", CASE)
    assert (journal.others, journal.writes) == ([(FINDING, "1/test/1", CASE)], [])
    replaced = journal.finding(FINDING.fingerprint)
    assert (replaced.explained, replaced.case_id) == (False, "1/test/1")
    journal.begin(None)
    assert not journal.finding(FINDING.fingerprint).explained


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda sound: replace(sound, code="another"), "its pgduel is another one"),
        (lambda sound: replace(sound, plan=replace(PLAN, given=UserInput(sql="/nowhere"))), "it has no /nowhere"),
    ],
)
def test_a_campaign_is_refused_with_the_reason(change: Callable[[RemoteWork], RemoteWork], reason: str) -> None:
    assert Host().prepare(change(work()), None).refusal.startswith(reason)


def test_a_process_requests_missing_bases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "file.c").write_text("int x;\n")
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path / "here"))
    tree = git.import_directory(tmp_path / "source")
    pack = git.packed([tree])
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path / "there"))
    spec = ArmSpec("a", Base("source", "17.11", "", tree), Series("base"), FLAVORS["assert"])
    assert Host().prepare(work(specs=(spec,)), None) == Preparation(missing=(tree,))
    assert "give all machines the same compiler" in Host().prepare(work(specs=(spec,)), pack).refusal
    assert git.show(tree, "file.c") == "int x;\n"


@pytest.fixture
def old_builds(campaigns: Path) -> Iterator[list[Path]]:
    """Yield the directories of three builds, which this machine compiled for the campaign `nightly`."""
    found = [workdir.builds() / f"test-remote-{number}" for number in range(3)]
    for directory in found:
        directory.mkdir(exist_ok=True)
        os.utime(directory, (0, 0))
        note_build("nightly", directory.name)
    yield found
    for directory in found:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.mark.servers
@pytest.mark.timeout(300)
def test_a_worker_deletes_the_old_builds_of_a_named_campaign(base: Base, build: Build, old_builds: list[Path]) -> None:
    specs = tuple(ArmSpec(name, base, Series("base"), FLAVORS["assert"]) for name in ("a", "b"))
    named = work(plan=replace(PLAN, name="nightly"), specs=specs, key=build.key)
    keep_plan(named.plan)  # as on the campaign's own machine, which deletes its builds itself
    for deleted in (0, len(old_builds)):
        host = Host()
        assert host.prepare(named, None) == Preparation()
        host.release(named.name)
        assert [each.exists() for each in old_builds].count(False) == deleted
        file_of("nightly", ".plan.json").unlink(missing_ok=True)


@pytest.mark.servers
@pytest.mark.timeout(300)
def test_a_process_works_for_one_campaign_and_stops_its_servers_without_jobs(base: Base, build: Build) -> None:
    host = Host(silent=8)
    specs = tuple(ArmSpec(name, base, Series("base"), FLAVORS["assert"]) for name in ("a", "b"))
    one = work(specs=specs, key=build.key)
    job = Range(0, "set_operations", 0, 1)
    assert host.execute("one", job, None) is None
    assert host.prepare(one, None) == Preparation()
    answer = host.execute("one", job, None)
    assert answer is not None
    assert isinstance(answer.result, RangeResult)
    assert answer.result.done == 1
    busy = Preparation(refusal="it works for another campaign (1)", busy=True)
    assert host.prepare(replace(one, name="two"), None) == busy
    directory = Path(answer.directory)
    until = time.monotonic() + 120
    while directory.exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert not directory.exists()
    assert host.execute("one", job, None) is None


@pytest.mark.servers
@pytest.mark.timeout(300)
def test_a_crash_is_returned_although_its_server_does_not_start_again(
    base: Base, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seeded, "case_of", lambda *_: CRASH_OF_B)
    host = Host()
    specs = tuple(ArmSpec(name, base, Series("base"), FLAVORS["assert"]) for name in ("a", "b"))
    one = work(specs=specs, key=build.key)
    assert host.prepare(one, None) == Preparation()
    try:
        job = Range(0, "set_operations", 0, 1)
        answer = host.execute("one", job, None)
        assert answer is not None
        assert [found.oracle for found, _, _ in answer.found] == ["crash"]
        (line,) = answer.lines
        assert line.startswith("server b did not start: ")
        assert not answer.prepared
        assert host.execute("one", job, None) is None
        assert host.prepare(one, None) == Preparation()
        assert host.execute("one", job, None) is not None
    finally:
        host.release("one")
