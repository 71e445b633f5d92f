"""Tests of campaigns of several people in one store, as users run them. Each person has own campaign directories."""

import os
import re
import signal
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from fuzz.campaign.catalog import all_campaigns, opened
from fuzz.servers.cluster import Cluster
from fuzz.store_url import VARIABLE
from tests.cli import known_results
from tests.cli.command import EQUALS, Command, Ended, ended, json_of

pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.timeout(900), pytest.mark.usefixtures("shared_store")]

CASES = ("--cases", "16", "--generator", "partitioned_joins")


@pytest.fixture
def alice(tmp_path: Path) -> Command:
    return Command(tmp_path / "alice")


@pytest.fixture
def bob(tmp_path: Path) -> Command:
    return Command(tmp_path / "bob")


def _cases(number: int) -> int:
    """Return the cases of a campaign so far, 0 before it begins."""
    for directory in all_campaigns():
        if directory.name == str(number):
            with opened(directory) as store:
                return store.counters.cases.total()
    return 0


def _listed(pgduel: Command, what: str, file: Path) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = json_of(pgduel("list", what, "--json", file), file, 0)
    return rows


def _one_line(ended: Ended) -> str:
    assert (ended.status, ended.err.count("\n")) == (2, 1), ended.out + ended.err
    return ended.err


def test_a_finding_is_found_by_one_and_replayed_reported_and_shown_by_another(
    alice: Command, bob: Command, bugged: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "summary.json"
    arguments: tuple[str | Path, ...] = (
        *bugged,
        "--generator",
        "merged_bounds",
        "--stop-at-first",
        "--minutes",
        "10",
        "--json",
        file,
    )
    summary = json_of(alice("fuzz", *arguments), file, 1)
    (found, *_) = summary["findings"]
    assert found["shown"] is not None, summary
    name = f"{summary['campaign']}/{found['fingerprint']}"
    assert name in [row["finding"] for row in _listed(bob, "findings", file)]
    replayed = bob("replay", name)
    assert (replayed.status, f"It still differs: finding {found['fingerprint']}." in replayed.out) == (1, True)
    assert (bob.campaigns / "1").exists() is False
    shown = bob("show", name)
    assert (shown.status, found["fingerprint"] in shown.out) == (0, True), shown.err
    reported = bob("report", summary["campaign"], "--as", "markdown")
    assert reported.status == 0, reported.err
    assert found["fingerprint"] in reported.out


def test_two_people_run_campaigns_in_one_store_at_the_same_time(alice: Command, bob: Command, tmp_path: Path) -> None:
    both = [each.start("fuzz", *EQUALS, *CASES) for each in (alice, bob)]
    for process in both:
        done = ended(process)
        assert done.status == 0, done.out + done.err
    campaigns = _listed(alice, "campaigns", tmp_path / "list.json")
    assert [(row["campaign"], row["cases"]) for row in campaigns] == [("1", "16"), ("2", "16")]
    assert sorted(row["seed"] for row in campaigns) == ["1", "2"]
    assert campaigns == _listed(bob, "campaigns", tmp_path / "list.json")


def test_programs_do_not_inherit_the_address_of_the_store(alice: Command) -> None:
    process = alice.start("fuzz", *EQUALS, *CASES)
    pgduel = psutil.Process(process.pid)
    assert VARIABLE in pgduel.environ()
    command, names = pgduel.cmdline(), set[str]()
    while process.poll() is None:
        for program in pgduel.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if program.cmdline() != command:  # it is a program of its own already
                    names.add(program.name())
                    assert VARIABLE not in program.environ(), program.cmdline()
        time.sleep(0.05)
    assert {"postgres", "sh"} <= names  # servers, and the watchdog that stops them
    done = ended(process)
    assert (done.status, _cases(1)) == (0, 16), done.out + done.err


def test_a_killed_campaign_is_resumed_on_another_machine_but_not_while_it_runs(
    alice: Command, bob: Command, tmp_path: Path
) -> None:
    process = alice.start("fuzz", *EQUALS, *CASES)
    while not _cases(1):
        assert process.poll() is None, process.communicate()
        time.sleep(0.2)
    process.send_signal(signal.SIGSTOP)
    refused = bob("fuzz", "--resume", "1")
    assert re.match(rf"pgduel: campaign 1 runs already: process {process.pid} on ", _one_line(refused))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    file = tmp_path / "summary.json"
    assert json_of(bob("fuzz", "--resume", "last", "--json", file), file, 0)["cases"] == 16


@pytest.mark.parametrize("dask", [(), ("--dask", "local")])
def test_a_campaign_outlasts_the_kill_of_its_stores_server(
    alice: Command,
    store_server: Cluster,
    dask: tuple[str, ...],
    options: tuple[str | Path, ...],
    expected: known_results.Results,
) -> None:
    process = alice.start("fuzz", *options, *known_results.CASES, *dask)
    while not _cases(1):
        assert process.poll() is None, process.communicate()
        time.sleep(0.2)
    store_server.kill9()
    time.sleep(3)
    store_server.start()
    done = ended(process)
    (campaign,) = all_campaigns()
    assert (done.status, known_results.results_of(campaign)) == (0, expected), done.out + done.err
    assert done.out.count("trying again for 10 minutes") == 1
    assert done.out.count("the store answers again") == 1


def test_a_named_campaign_has_its_history_on_all_machines(alice: Command, bob: Command, tmp_path: Path) -> None:
    started = alice("campaign", "start", "nightly", *EQUALS, *CASES[2:], "--minutes", "0.05")
    assert started.status in (0, 2), started.out + started.err  # a few cases may prove too little
    file = tmp_path / "status.json"
    status = json_of(bob("campaign", "status", "nightly", "--json", file), file, 0)
    assert [run["campaign"] for run in status["runs"]] == ["1"]
    reported = bob("campaign", "report", "nightly", "--as", "markdown")
    assert "nightly" in reported.out, reported.err
    served = bob.start("campaign", "serve", "nightly")
    assert served.stdout is not None
    with urllib.request.urlopen(served.stdout.readline().split()[-1]) as page:
        assert b"nightly" in page.read()
    served.send_signal(signal.SIGINT)
    served.communicate()
    assert "another machine has the options of campaign nightly" in _one_line(bob("campaign", "start", "nightly"))
    again = bob("campaign", "start", "nightly", *EQUALS, *CASES[2:], "--minutes", "0.05")
    assert again.status in (0, 2), again.out + again.err
    status = json_of(alice("campaign", "status", "nightly", "--json", file), file, 0)
    assert [(run["campaign"], run["seed"]) for run in status["runs"]] == [("1", 1), ("2", 2)]
