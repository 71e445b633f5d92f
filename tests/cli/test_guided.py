"""Tests of `pgduel fuzz --engine libfuzzer` on real servers that count edges."""

import re
from pathlib import Path
from typing import Any

import pytest

from fuzz import workdir
from tests.cli.command import Command, json_of

pytestmark = [pytest.mark.servers, pytest.mark.long(group="guided"), pytest.mark.timeout(2400)]

ONE_ARM = ("--arm", "only=upstream", "--workers", "1", "--engine", "libfuzzer", "--generator", "set_operations")
BUG = workdir.PROJECT / "tests" / "injected_bugs" / "group_keeps_right_count.patch"
_INITED = re.compile(r"^#\d+\tINITED cov: (\d+) .*?corp: (\d+)/", re.MULTILINE)


def fuzzed(pgduel: Command, file: Path, *options: str) -> Any:
    """Return the result of a guided campaign on one arm without findings."""
    return json_of(pgduel("fuzz", *ONE_ARM, *options, "--json", file), file, 0)


def inputs(pgduel: Command) -> set[str]:
    """Return the names of the kept inputs."""
    return {path.name for path in (pgduel.campaigns / "inputs" / "set_operations").iterdir()}


def inited(pgduel: Command, campaign: str) -> tuple[int, int]:
    """Return the edges and inputs with which libFuzzer began to change inputs."""
    log = pgduel.campaigns / campaign / "libfuzzer" / "set_operations-0.log"
    found = _INITED.search(log.read_text())
    assert found, log.read_text()
    return int(found[1]), int(found[2])


def test_inputs_with_new_edges_are_kept_and_the_next_run_begins_with_them(pgduel: Command, tmp_path: Path) -> None:
    first = fuzzed(pgduel, tmp_path / "first.json", "--cases", "150", "--seed", "1")
    begun, _ = inited(pgduel, first["campaign"])
    assert 1000 < begun < first["edges"]["reached"] < first["edges"]["counted"]
    kept = inputs(pgduel)
    assert len(kept) > 8  # more than the random ones of the start
    # cases are fewer than the kept inputs, which are not executed again
    second = fuzzed(pgduel, tmp_path / "second.json", "--cases", "20", "--seed", "2")
    edges, number = inited(pgduel, second["campaign"])
    assert edges >= first["edges"]["reached"]
    assert number > 20
    assert second["edges"]["reached"] >= edges


def test_an_injected_bug_is_found_and_replayed_by_its_input(pgduel: Command, tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    arms = ("--arm", "sound=upstream", "--arm", f"bugged={BUG}", "--flavor", "guided")
    what = ("--engine", "libfuzzer", "--generator", "set_operations", "--stop-at-first", "--minutes", "10")
    found = json_of(pgduel("fuzz", *arms, *what, "--json", file), file, 1)["findings"][0]
    assert re.fullmatch("libfuzzer/set_operations/[0-9a-f]{40}", found["case"])
    replay = found["replay"].split()
    assert replay[:2] == [workdir.COMMAND, "replay"]
    assert pgduel(*replay[1:]).status == 1
    for path in (pgduel.campaigns / "inputs" / "set_operations").iterdir():
        path.unlink()
    again = pgduel("replay", found["case"], *arms)
    assert f"finding {found['fingerprint']}" in again.out


def test_engines_are_compared_without_the_corpus(pgduel: Command, tmp_path: Path) -> None:
    fuzzed(pgduel, tmp_path / "first.json", "--cases", "30", "--seed", "1")
    kept = inputs(pgduel)
    file = tmp_path / "engines.json"
    options = ("--cpu-minutes", "0.4", "--seed", "7", "--arm", "master", "--arm", "patched")
    seeded, guided = json_of(pgduel("bench", "engines", *options, "--json", file), file, 0)
    assert (seeded["engine"], guided["engine"]) == ("seeded", "libfuzzer")
    for each in (seeded, guided):
        assert each["seed"] == 7
        assert each["cpu_seconds"] >= 24
        assert 10_000 < each["edges"]["reached"] < each["edges"]["counted"]
        assert each["curve"][-1][1] == each["edges"]["reached"]
        assert 0 < each["changed"]["reached"] < each["changed"]["counted"]
        assert sum(part["reached"] for part in each["parts"].values()) < each["edges"]["reached"]
    assert inputs(pgduel) == kept


def test_runs_print_their_edges_and_the_report_combines_them(pgduel: Command) -> None:
    options = ("--arm", "only=upstream", "--flavor", "guided", "--generator", "set_operations")
    reached = []
    for given in (options, ()):
        ended = pgduel("campaign", "start", "nightly", "--minutes", "0.2", *given)
        assert ended.status in (0, 2), ended.out + ended.err  # a few cases may prove too little
        (line,) = re.findall(r"^edges reached: (\d+) of \d+$", ended.out, re.MULTILINE)
        reached.append(int(line))
    report = pgduel("campaign", "report", "nightly", "--as", "markdown").out
    (together,) = re.findall(r"^Edges reached: (\d+) of \d+\.$", report, re.MULTILINE)
    assert max(reached) <= int(together) <= sum(reached)
