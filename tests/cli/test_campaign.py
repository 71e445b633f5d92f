"""Tests of campaigns with a name: they run until stopped, and go on."""

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from fuzz.campaign.catalog import opened
from fuzz.campaign.schedule import next_cases
from fuzz.campaign.sqlite import FILE
from tests.cli.command import EQUALS, Command, json_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]


def _await_cases(pgduel: Command, number: int, process: subprocess.Popen[str]) -> None:
    store = pgduel.campaigns / str(number)
    while True:
        assert process.poll() is None, process.communicate()
        if (store / FILE).exists():
            with opened(store) as there:
                if there.counters.cases.total():
                    return
        time.sleep(0.2)


def test_a_stopped_campaign_goes_on_with_the_next_cases(pgduel: Command, tmp_path: Path) -> None:
    process = pgduel.start("campaign", "start", "nightly", *EQUALS, "--generator", "merged_bounds")
    _await_cases(pgduel, 1, process)
    refused = pgduel("campaign", "start", "nightly")
    assert (refused.status, refused.err.count("\n")) == (2, 1), refused.err
    assert "campaign nightly runs already" in refused.err
    assert pgduel("campaign", "stop", "nightly").status == 0
    out, err = process.communicate()
    assert process.returncode in (0, 2), out + err  # a few cases may prove too little
    again = pgduel("campaign", "start", "nightly", "--minutes", "0.05")
    assert again.status in (0, 2), again.out + again.err
    file = tmp_path / "status.json"
    status = json_of(pgduel("campaign", "status", "nightly", "--json", file), file, 0)
    assert (status["process"], status["bugs"]) == (None, [])
    assert [run["seed"] for run in status["runs"]] == [1, 1]
    with opened(pgduel.campaigns / "1") as first, opened(pgduel.campaigns / "2") as second:
        assert second.plan.begin == next_cases(first.plan.generators, first.done(), {}, {})
        assert second.plan.begin["merged_bounds"] <= status["runs"][0]["cases"]
    assert [run["ended"] for run in status["runs"]] == ["interrupted", "time is up"]
    unit = pgduel("campaign", "unit", "nightly")
    assert f'Environment="PGDUEL_CAMPAIGNS={pgduel.campaigns}"' in unit.out
    if shutil.which("systemd-analyze"):
        (tmp_path / "pgduel-nightly.service").write_text(unit.out)
        verified = subprocess.run(["systemd-analyze", "verify", tmp_path / "pgduel-nightly.service"])
        assert verified.returncode == 0


def test_an_error_is_told_to_the_command_of_the_campaign(pgduel: Command, tmp_path: Path) -> None:
    arms = ("--arm", "a=upstream", "--arm", f"b={tmp_path / 'absent.patch'}")
    for number, options in enumerate(((*arms, "--notify", f"tee -a {tmp_path / 'events'}"), ()), 1):
        ended = pgduel("campaign", "start", "nightly", *options)
        assert (ended.status, ended.err.count("\n")) == (2, 1), ended.out + ended.err
        events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
        assert [(each["event"], each["campaign"]) for each in events] == [("error", "nightly")] * number
        assert events[-1]["error"] in ended.err


def test_an_unknown_campaign_is_refused_in_one_line(pgduel: Command) -> None:
    for command in ("status", "stop", "unit"):
        ended = pgduel("campaign", command, "nightly")
        assert (ended.status, ended.err.count("\n")) == (2, 1), ended.err
        assert "no campaign is called nightly" in ended.err
