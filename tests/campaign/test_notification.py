"""Tests of notifications: the command of the user, its events, and commands that fail."""

import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from fuzz.campaign import notification
from fuzz.campaign.bug_history import CampaignRun
from fuzz.campaign.continuous import keep_plan, kept_plan
from fuzz.campaign.known import KnownFault
from fuzz.campaign.notification import command_of, notified_of_errors, notify_of_bugs
from fuzz.campaign.plan import Plan
from fuzz.errors import CaseError, ServerError
from fuzz.servers.arm_options import ArmOptions
from fuzz.triage.findings import StoredFinding
from fuzz.triage.interestingness import ReducedCase
from fuzz.triage.replays import ReplayResult
from oracles.model.case import Case
from oracles.model.finding import Finding
from tests.cli.preloaded import PreloadedCommand

CASE = Case("x", (), ())
INJECTION = "'; touch injected; $(touch injected) `touch injected` \n\x1b\udcff"
OLD, MENDED = "1", "2"  # builds


@pytest.fixture(autouse=True)
def own_campaigns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDUEL_CAMPAIGNS", str(tmp_path / "campaigns"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """Return a plan whose command appends its stdin to the file `events`."""
    command = command_of(f"tee -a {tmp_path / 'events'}")
    return Plan(1, {}, None, None, stop_at_first=False, arms=ArmOptions(), name="nightly", notify=command)


def events(directory: Path) -> list[dict[str, Any]]:
    file = directory / "events"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def found(origin: str) -> StoredFinding:
    finding = Finding("result", ("a", "b"), origin, None, f"1 row missing {INJECTION}", "", "")
    return StoredFinding(finding, "1/x/1", CASE, 1, None, reduced=True, smallest=ReducedCase(CASE, finding, 3, 3))


def run_of(
    plan: Plan, number: int, *findings: StoredFinding, build: str = OLD, replays: Sequence[ReplayResult] = ()
) -> CampaignRun:
    builds = {"a": "0", "b": build}
    return CampaignRun(str(number), plan, 60.0, 100, 10_000, "time is up", findings, builds, tuple(replays))


def told(plan: Plan, runs: Sequence[CampaignRun]) -> list[str]:
    """Notify of the bugs of runs, and return the lines for the user."""
    lines: list[str] = []
    notify_of_bugs(plan, runs, lines.append)
    return lines


def test_each_change_of_a_bug_is_told_once(plan: Plan, tmp_path: Path) -> None:
    bug = found("x")
    name = bug.finding.fingerprint
    runs = [
        run_of(plan, 1, bug),
        run_of(plan, 2, bug),
        run_of(plan, 3, build=MENDED, replays=[ReplayResult(name, shown=False)]),
        run_of(plan, 4, build=MENDED),
        run_of(plan, 5),
        run_of(plan, 6, bug, found("y")),
    ]
    for number in range(len(runs) + 1):
        assert told(plan, runs[:number]) == told(plan, runs[:number]) == []
    first, fixed, again, other = events(tmp_path)
    assert [each["event"] for each in (first, fixed, again, other)] == ["new", "fixed", "back again", "new"]
    assert first["campaign"] == "nightly"
    assert first["bug"] == fixed["bug"] == again["bug"] != other["bug"]
    assert (first["finding"], first["status"], fixed["status"]) == (f"1/{name}", "new", "fixed")
    assert first["summary"] == bug.finding.summary
    assert not (tmp_path / "injected").exists()


def test_earlier_bugs_are_no_news_when_notifications_begin(plan: Plan, tmp_path: Path) -> None:
    silent = replace(plan, notify=())
    assert told(silent, [run_of(plan, 1, found("x"))]) == []
    assert told(plan, [run_of(plan, 1, found("x"))]) == []
    assert told(plan, [run_of(plan, 1, found("x")), run_of(plan, 2, found("y"))]) == []
    assert [each["first"] for each in events(tmp_path)] == ["2"]


def test_known_faults_are_not_told(plan: Plan, tmp_path: Path) -> None:
    knowing = replace(plan, known=(KnownFault(found("x").finding.fingerprint),))
    told(knowing, [])
    told(knowing, [run_of(plan, 1, found("x"))])
    assert events(tmp_path) == []


def test_an_error_is_told_and_raised(plan: Plan, tmp_path: Path) -> None:
    for error in (ServerError("the servers do not stay up"), ZeroDivisionError()):
        with pytest.raises(type(error)), notified_of_errors(plan, print):
            raise error
    with notified_of_errors(plan, print):
        pass
    assert events(tmp_path) == [
        {"event": "error", "campaign": "nightly", "error": "the servers do not stay up"},
        {"event": "error", "campaign": "nightly", "error": "ZeroDivisionError()"},
    ]


def script(directory: Path, text: str) -> tuple[str, ...]:
    """Return the command of a shell script."""
    file = directory / "notify.sh"
    file.write_text(text)
    return command_of(f"sh {file}")


def test_a_command_that_fails_is_one_line_and_is_called_again_later(plan: Plan, tmp_path: Path) -> None:
    told(plan, [])
    runs = [run_of(plan, 1, found("x"), found("y"))]
    failing = replace(plan, notify=script(tmp_path, "cat >> calls; echo first >&2; echo 'no \x1b mail' >&2; exit 3"))
    (line,) = told(failing, runs)
    assert line.startswith("no notification of new bug ")
    assert line.endswith("/sh ended with status 3 (no \x1b mail); it is tried again after the next run")
    assert (tmp_path / "calls").read_text().count("\n") == 1
    assert told(plan, [*runs, run_of(plan, 2, found("x"))]) == []
    assert [(each["event"], each["status"]) for each in events(tmp_path)] == [
        ("new", "still there"),
        ("new", "not seen again"),
    ]


def test_a_command_that_hangs_is_killed_with_its_children(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notification, "_LIMIT", 1.0)
    told(plan, [])
    hanging = replace(plan, notify=script(tmp_path, "sleep 600 & echo $! > child; wait"))
    began = time.monotonic()
    (line,) = told(hanging, [run_of(plan, 1, found("x"))])
    assert "sh did not end within 1 s, and was killed; it is tried again after the next run" in line
    assert time.monotonic() - began < 60
    child = int((tmp_path / "child").read_text())
    with suppress(psutil.NoSuchProcess):
        while psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.05)


def test_a_command_that_does_not_read_its_input_succeeds(plan: Plan, tmp_path: Path) -> None:
    told(plan, [])
    large = replace(found("x"), finding=replace(found("x").finding, summary="x" * 1_000_000))
    assert told(replace(plan, notify=script(tmp_path, "touch called")), [run_of(plan, 1, large)]) == []
    assert (tmp_path / "called").exists()


def test_a_command_that_is_missing_later_is_one_line(plan: Plan, tmp_path: Path) -> None:
    told(plan, [])
    missing = replace(plan, notify=(str(tmp_path / "absent"),))
    (line,) = told(missing, [run_of(plan, 1, found("x"))])
    assert f"{tmp_path}/absent cannot be started (No such file or directory)" in line
    lines: list[str] = []
    with pytest.raises(ServerError), notified_of_errors(missing, lines.append):
        raise ServerError("x")
    assert lines == [f"no notification of the error: {tmp_path}/absent cannot be started (No such file or directory)"]


def test_words_are_those_of_a_shell_and_the_program_is_found() -> None:
    assert command_of("sh -c 'a b' \"c\"") == (shutil.which("sh"), "-c", "a b", "c")
    assert command_of(" ") == ()
    assert command_of(os.path.relpath(sys.executable)) == (sys.executable,)
    with pytest.raises(CaseError, match="there is no program '/absent'; give the path of one"):
        command_of("/absent x")
    with pytest.raises(CaseError, match="is no command"):
        command_of("mail 'x")


def test_a_missing_command_is_refused_at_the_start(plan: Plan, tmp_path: Path) -> None:
    keep_plan(plan)
    ended = PreloadedCommand(tmp_path / "campaigns")("campaign", "start", "nightly", "--notify", "/absent")
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert "--notify: there is no program '/absent'" in ended.err
    assert kept_plan("nightly").notify == plan.notify
