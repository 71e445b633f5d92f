"""Tests of the disk of a continuous campaign: which builds and files are deleted, and what is never deleted."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from fuzz import workdir
from fuzz.campaign.catalog import opened
from fuzz.campaign.continuous import keep_plan, runs_of
from fuzz.campaign.counters import Counters
from fuzz.campaign.database import home
from fuzz.campaign.disk import (
    GB,
    delete_builds_of_worker,
    make_room,
    note_build,
    own_builds,
    size_of_builds,
    size_of_campaign,
    size_of_run,
)
from fuzz.campaign.plan import Plan
from fuzz.campaign.store import StoredDoubt
from fuzz.servers.arm_options import ArmOptions
from fuzz.triage.blame import Blame
from fuzz.triage.interestingness import ReducedCase
from fuzz.triage.replays import ReplayResult
from oracles.model.case import Case, Step
from oracles.model.finding import Finding
from tests.cli.preloaded import PreloadedCommand

PLAN = Plan(1, {}, None, None, stop_at_first=False, arms=ArmOptions(), name="nightly")
CASE = Case("x", (Step("CREATE TABLE t (a int)"),), ())
LARGE = 500_000  # characters of a doubt, which no database can compress much
DOUBTED = replace(CASE, scene=(Step(Random(1).randbytes(LARGE // 2).hex()),))
BUG = Finding("result", ("master", "patched"), "rows", None, "1 row missing", "", "")
BYTES = 100_000  # of a build


@pytest.fixture(autouse=True)
def own_cache(campaigns: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test have campaigns in both kinds of stores, and builds of its own."""
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path))


def make_build(key: str, *, of: str = "nightly") -> None:
    """Make a directory as large as a small build, compiled for a campaign."""
    home = workdir.builds() / key
    home.mkdir()
    (home / "postgres").write_bytes(b"x" * BYTES)
    note_build(of, key)


def make_run(number: int, patched: str, findings: Sequence[Finding] = (), replays: Sequence[ReplayResult] = ()) -> Path:
    """Make a run with a doubt, a page and a reproducer, and return its directory."""
    return _made(number, PLAN, patched, findings, replays)


def blame_in(directory: Path, blame: Blame) -> None:
    """Record the patch to blame for the finding of a run."""
    with opened(directory) as store:
        store.record_blame(BUG.fingerprint, blame)


def _made(number: int, plan: Plan, patched: str, findings: Sequence[Finding], replays: Sequence[ReplayResult]) -> Path:
    directory = home() / str(number)
    (directory / "reproducers").mkdir(parents=True)
    (directory / "reproducers" / "x.sql").write_text("SELECT 1;")
    (directory / f"pgduel-{number}.html").write_text("x" * BYTES)
    with opened(directory) as store:
        series = [f"patch {each}" for each in range(1, number + 1)]
        facts = {"master": {"build": "base", "series": []}, "patched": {"build": patched, "series": series}}
        store.begin(plan, facts)
        store.progress(Counters(seconds=60.0), {})
        store.add_doubt(StoredDoubt("result", "unstable", "it changes", "1/x/1", DOUBTED))
        for finding in findings:
            store.add_finding(finding, "1/x/1", CASE)
            store.record_reduction(finding.fingerprint, ReducedCase(CASE, finding, 3, 3), 1.0)
        for replay in replays:
            store.record_replay(replay)
    return directory


def room_made(gigabytes: float = 20.0, builds: Sequence[str] = ()) -> list[str]:
    return list(make_room(replace(PLAN, disk=gigabytes), runs_of("nightly"), builds))


def sizes() -> list[int]:
    return [size_of_run(run) for run in runs_of("nightly")]


def left() -> set[str]:
    return {path.name for path in workdir.builds().iterdir() if path.is_dir()}


def test_old_builds_are_deleted_unless_a_bug_or_another_campaign_needs_them() -> None:
    for key in ("base", "1", "2", "3", "4", "5", "6", "next", "unused"):
        make_build(key)
    make_build("foreign", of="weekly")
    make_run(1, "1", [BUG])
    for number in range(2, 7):
        make_run(number, str(number))
    _made(7, replace(PLAN, name=""), "3", (), ())
    (line,) = room_made(builds=["base", "next"])
    assert line == "builds of older revisions that no bug needs are deleted: 2, unused"
    assert left() == {"base", "1", "3", "4", "5", "6", "next", "foreign"}
    assert own_builds("nightly") == left() - {"foreign"}
    assert room_made(builds=["base", "next"]) == []


def test_a_worker_deletes_the_builds_that_nothing_used_for_a_day() -> None:
    for key in ("base", "1", "2", "3"):
        make_build(key)
    for key in ("base", "1", "2"):
        os.utime(workdir.builds() / key, (0, 0))
    make_build("foreign", of="weekly")
    os.utime(workdir.builds() / "foreign", (0, 0))
    delete_builds_of_worker("nightly", {"base", "2"})
    assert left() == {"base", "2", "3", "foreign"}
    assert own_builds("nightly") == left() - {"foreign"}


def test_builds_of_fixed_bugs_are_deleted() -> None:
    for key in ("base", "1", "2", "3", "4"):
        make_build(key)
    make_run(1, "1", [BUG])
    make_run(2, "2", replays=[ReplayResult(BUG.fingerprint, shown=False)])
    for number in (3, 4):
        make_run(number, str(number), replays=[ReplayResult(BUG.fingerprint, shown=False)])
    room_made(builds=["base", "4"])
    assert left() == {"base", "2", "3", "4"}


def test_builds_of_bugs_that_are_never_replayed_are_deleted() -> None:
    for key in ("base", "1", "2", "3", "4"):
        make_build(key)
    with opened(make_run(1, "1", [BUG])) as store:
        store.record_reduction(BUG.fingerprint, ReducedCase(CASE, BUG, 0, 3), 1.0)  # it did not occur again
    for number in (2, 3, 4):
        make_run(number, str(number))
    room_made(builds=["base", "4"])
    assert left() == {"base", "2", "3", "4"}


def test_builds_around_the_blame_of_a_bug_stay() -> None:
    for key in ("base", "1", "2", "3", "4", "5", "6", "7", "8"):
        make_build(key)
    for number in (1, 2, 3):
        make_run(number, str(number))
    series = tuple(f"patch {number}" for number in range(1, 5))
    blame = Blame("patched", series, ((0, False), (2, False), (3, True), (4, True)))
    blame_in(make_run(4, "4", [BUG]), blame)
    for number in range(5, 9):
        make_run(number, str(number))
    room_made(builds=["base", "8"])
    assert left() == {"base", "2", "3", "4", "6", "7", "8"}


def test_details_of_the_oldest_runs_go_first() -> None:
    directories = [make_run(number, "1", [BUG]) for number in (1, 2, 3)]
    before = sum(sizes())
    findings = [run.findings for run in runs_of("nightly")]
    assert room_made(before / GB) == []
    (line,) = room_made((before - 1000) / GB)
    assert line.startswith("details of campaigns 1 to 1 are deleted, because of --disk ")
    first, second, _ = sizes()
    assert second - first > LARGE
    assert [run.findings for run in runs_of("nightly")] == findings
    assert (directories[0] / "reproducers" / "x.sql").exists()
    assert not (directories[0] / "pgduel-1.html").exists()
    assert (directories[1] / "pgduel-2.html").exists()


def test_findings_and_the_last_run_stay_whatever_the_limit() -> None:
    make_build("1")
    directories = [make_run(number, "1", [BUG]) for number in (1, 2)]
    findings = [run.findings for run in runs_of("nightly")]
    assert sum(sizes()) > 2 * LARGE
    _, line = room_made(0.0001)
    assert sum(sizes()) > LARGE
    assert "more than --disk 0.0001" in line
    assert [run.findings for run in runs_of("nightly")] == findings
    assert (directories[1] / "pgduel-2.html").exists()
    assert size_of_builds("nightly") >= BYTES


def test_status_has_the_size_of_builds_files_and_tables() -> None:
    make_build("1")
    keep_plan(PLAN)
    make_run(1, "1")
    (run,) = runs_of("nightly")
    assert LARGE < size_of_run(run) - BYTES < 4 * LARGE
    assert size_of_campaign("nightly", [run]) == size_of_builds("nightly") + size_of_run(run)
    with (workdir.builds() / "1" / "postgres").open("ab") as file:
        os.posix_fallocate(file.fileno(), 0, 20_000_000)
    printed = PreloadedCommand(workdir.campaigns())("campaign", "status", "nightly")
    assert "\n0.02 of 20 GB on disk\n" in printed.out, printed.err
