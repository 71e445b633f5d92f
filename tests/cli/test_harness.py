"""Tests of `pgduel harness` with real harnesses: kept inputs, the next seed, and planted bugs as findings."""

import os
import shlex
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from fuzz import workdir
from fuzz.servers.account import server_account
from tests.cli.command import Command, ended, json_of

pytestmark = pytest.mark.servers

BUG = workdir.PROJECT / "tests" / "libfuzzer" / "bugs" / "blockbloom_lacks_what_was_added.patch"
BUGGED = ("--arm", f"bugged=patched,{BUG}")


def fuzzed(pgduel: Command, inputs: Path, file: Path, *options: str, status: int = 0) -> Any:
    """Return the result of a run with its own directory of kept inputs."""
    return json_of(pgduel("harness", *options, "--inputs", inputs, "--json", file), file, status)


def test_the_next_run_begins_where_the_last_one_ended_with_the_next_seed(
    pgduel: Command, open_directory: Path, tmp_path: Path
) -> None:
    first, second = (
        fuzzed(pgduel, open_directory, tmp_path / f"{number}.json", "resowner", "--minutes", "0.15")
        for number in (1, 2)
    )
    assert (first["seed"], second["seed"]) == (1, 2)
    reached, begun = first["harnesses"]["resowner"]["ended"], second["harnesses"]["resowner"]["begun"]
    assert first["harnesses"]["resowner"]["begun"]["features"] < reached["features"]
    assert begun["features"] >= 0.99 * reached["features"]
    assert begun["edges"] >= 0.99 * reached["edges"]
    assert len(list((open_directory / "resowner" / "inputs").iterdir())) == second["harnesses"]["resowner"]["kept"]
    assert second["harnesses"]["resowner"]["functions"]["called"] > 10


def test_a_planted_bug_is_a_finding_that_its_command_replays(
    pgduel: Command, open_directory: Path, tmp_path: Path
) -> None:
    file = tmp_path / "result.json"
    found = fuzzed(pgduel, open_directory, file, "blockbloom", "--minutes", "1", *BUGGED, status=1)["findings"]
    assert [each["harness"] for each in found] == ["blockbloom"]
    assert found[0]["origin"].startswith("blockbloom: check in check_members, blockbloom/harness.c:")
    assert list((open_directory / "blockbloom" / "artifacts").iterdir()) == []  # the campaign has the input
    assert 0 < Path(found[0]["input"]).stat().st_size < 100
    replay = shlex.split(found[0]["replay"])
    assert replay[:2] == [workdir.COMMAND, "harness"]
    again = pgduel(*replay[1:])
    assert again.status == 1, again.err
    assert found[0]["origin"] in f"blockbloom: {again.out.split('origin: ')[1]}"
    assert pgduel("harness", "blockbloom", "--replay", found[0]["input"]).status == 0  # the bug is in that arm only

    assert f"1/{found[0]['fingerprint']}  harness" in pgduel("list", "findings").out
    shown = pgduel("show", found[0]["fingerprint"]).out
    assert found[0]["replay"] in shown
    assert " in check_members " in shown
    assert found[0]["replay"] in pgduel("replay", found[0]["fingerprint"]).err
    assert found[0]["replay"] in pgduel("report", "--as", "markdown").out


def test_an_input_that_a_killed_run_left_is_a_finding_of_the_next_run(
    pgduel: Command, open_directory: Path, tmp_path: Path
) -> None:
    account = server_account()
    (open_directory / "blockbloom").mkdir()
    for name in ("inputs", "artifacts"):
        account.make_private(open_directory / "blockbloom" / name)
    left = open_directory / "blockbloom" / "artifacts" / "crash-0"
    left.write_bytes(bytes.fromhex("0003000000000003e81407000000ff00"))
    account.give(left)
    options = ("blockbloom", "--minutes", "0.05")
    fuzzed(pgduel, open_directory, tmp_path / "sound.json", *options)
    assert left.exists()  # another arm may show it
    bugged = fuzzed(pgduel, open_directory, tmp_path / "bugged.json", *options, *BUGGED, status=1)
    assert len(bugged["findings"]) == 1
    assert not left.exists()


def test_harnesses_whose_code_the_series_lacks_are_left_out(
    pgduel: Command, open_directory: Path, tmp_path: Path
) -> None:
    refused = pgduel("harness", "sampling", "buckets", "--arm", "upstream")
    assert refused.status == 2
    for line in (
        "harness sampling left out: the series has no contrib/postgres_fdw/sampling.c",
        "harness buckets left out: the series has no function ExecHashBucketsFor",
    ):
        assert refused.out.count(line) == 1
    assert refused.err == "pgduel: no harness can test this series; give another one with --series or --arm\n"


def test_an_interrupted_run_ends_early_with_its_result(pgduel: Command, open_directory: Path, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    process = pgduel.start("harness", "resowner", "--minutes", "30", "--inputs", open_directory, "--json", file)
    assert process.stdout is not None
    while "fuzzing" not in (line := process.stdout.readline()):
        assert line, "the run ended early"
    time.sleep(5)
    os.killpg(process.pid, signal.SIGINT)
    result = json_of(ended(process), file, 0)
    assert result["harnesses"]["resowner"]["executions"] > 0
    assert result["harnesses"]["resowner"]["functions"]["called"] > 10
