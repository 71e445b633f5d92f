"""Tests of campaigns that are interrupted, are killed, or lose their servers."""

import os
import re
import signal
from pathlib import Path

import psutil
import pytest

from tests.cli.command import EQUALS, Command, await_cases, ended, json_of

pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.timeout(900)]


def test_an_interrupted_and_then_killed_campaign_is_resumed_to_its_end(pgduel: Command, tmp_path: Path) -> None:
    cases = ("--cases", "16", "--generator", "partitioned_joins")
    first = pgduel.start("fuzz", *EQUALS, *cases)
    await_cases(first, pgduel)
    os.killpg(first.pid, signal.SIGINT)
    out, _ = first.communicate()
    assert first.returncode == 0  # no finding
    assert "continue with: ./pgduel fuzz --resume 1" in out
    second = pgduel.start("fuzz", "--resume", "last")
    await_cases(second, pgduel)
    os.kill(second.pid, signal.SIGKILL)
    second.communicate()
    file = tmp_path / "summary.json"
    summary = json_of(pgduel("fuzz", "--resume", "1", "--json", file), file, 0)
    assert (summary["cases"], summary["campaign"], summary["ended"]) == (16, "1", "all cases done")


def _postmasters(command: psutil.Process) -> list[psutil.Process]:
    return [child for child in command.children() if child.name() == "postgres"]


def test_a_data_directory_that_is_gone_ends_the_campaign(pgduel: Command) -> None:
    process = pgduel.start("fuzz", *EQUALS, "--cases", "1000")
    await_cases(process, pgduel)
    postmaster = _postmasters(psutil.Process(process.pid))[-1]
    data = Path(postmaster.cwd())
    data.rename(data.with_name("gone"))
    postmaster.kill()
    done = ended(process)
    assert done.status == 2, done.out + done.err
    assert re.match(r"pgduel: the data directory of server \w, .*, is gone", done.err)
    assert "continue with: ./pgduel fuzz --resume 1" in done.out
