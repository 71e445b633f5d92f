"""Tests of the commands for SQLsmith, SQLancer and isolation specs on real servers."""

import os
from pathlib import Path

import pytest

from fuzz.sources.sqlancer.running import JAR_VARIABLE
from tests.cli.command import EQUALS, Command, json_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

# Only one arm has the setting. The other one raises an error.
DIFFERS = """\
session s1
step show { SHOW debug_force_hashjoin_bloom; }
session s2
step other { SELECT 1; }
"""


def test_sqlsmith_finds_no_crash_of_a_sound_server(pgduel: Command, tmp_path: Path) -> None:
    ended = pgduel("sqlsmith", "--arm", "upstream", "--minutes", "0.1", "--seed", "3", "--json", tmp_path / "it.json")
    result = json_of(ended, tmp_path / "it.json", 0)
    assert result["statements"] > 50
    assert (result["seed"], result["crashes"], result["findings"]) == (3, 0, [])
    assert result["canaries"]["planted"] == result["canaries"]["caught"] >= 20
    assert "No finding." in ended.out


def test_isolation_specs_agree_on_equal_builds(pgduel: Command, tmp_path: Path) -> None:
    ended = pgduel("isolation", "merge-update", *EQUALS, "--minutes", "0.3", "--json", tmp_path / "it.json")
    result = json_of(ended, tmp_path / "it.json", 0)
    assert result["executed"] >= 1
    assert result["findings"] == []
    assert result["canaries"] == {"planted": 3, "caught": 3, "retried": 0}


def test_isolation_specs_of_one_arm_are_judged_by_crashes_and_internal_errors(pgduel: Command, tmp_path: Path) -> None:
    ended = pgduel("isolation", "merge-update", "--arm", "upstream", "--minutes", "0.1", "--json", tmp_path / "it.json")
    result = json_of(ended, tmp_path / "it.json", 0)
    assert result["findings"] == []
    assert result["canaries"]["planted"] == result["canaries"]["caught"] == 2


MISSING_CANARY = """
import sys
from fuzz.cli import main
from fuzz.engines import isolation
isolation.is_reproducible = lambda *_: False
sys.argv[1:] = {arguments}
main()
"""


def test_a_missed_canary_of_specs_ends_the_run_before_its_first_spec(pgduel: Command, tmp_path: Path) -> None:
    file = tmp_path / "it.json"
    ended = pgduel.run(["-c", MISSING_CANARY.format(arguments=["isolation", *EQUALS, "--json", str(file)])])
    result = json_of(ended, file, 3)
    assert (result["executed"], result["canaries"]) == (0, {"planted": 3, "caught": 2, "retried": 0})
    assert ended.err.startswith("pgduel: canaries missed by isolation (drop_row)")


def test_a_spec_with_a_difference_becomes_a_reproducer(pgduel: Command, tmp_path: Path) -> None:
    (tmp_path / "shows.spec").write_text(DIFFERS)
    arms = ("--arm", "upstream", "--arm", "patched", "--minutes", "5")
    result = json_of(
        pgduel("isolation", tmp_path / "shows.spec", *arms, "--json", tmp_path / "it.json"), tmp_path / "it.json", 1
    )
    (finding,) = result["findings"]
    assert finding["summary"] == "patched prints another result of shows than upstream"
    script = Path(finding["reproducer"])
    assert "unrecognized configuration parameter" in script.read_text()
    assert pgduel("isolation", script, *arms).status == 1
    assert pgduel("show", finding["fingerprint"]).out == script.read_text()
    assert finding["fingerprint"] in pgduel("list", "findings").out
    assert "is one of an isolation spec: see it with ./pgduel isolation" in pgduel("replay", finding["fingerprint"]).err


def test_a_spec_that_is_not_there_is_refused(pgduel: Command) -> None:
    ended = pgduel("isolation", "no-such-spec", *EQUALS)
    assert ended.status == 2
    assert "no isolation spec is called 'no-such-spec'; give one of aborted-keyrevoke, " in ended.err


def test_sqlancer_finds_nothing_on_a_sound_server(pgduel: Command, tmp_path: Path) -> None:
    if JAR_VARIABLE not in os.environ:
        pytest.skip(f"SQLancer's jar is not there: {JAR_VARIABLE} names it")
    arguments = ("--oracle", "FUZZER", "--minutes", "0.5", "--seed", "5", "--json", tmp_path / "it.json")
    ended = pgduel("sqlancer", "--arm", "upstream", *arguments)
    result = json_of(ended, tmp_path / "it.json", 0)
    assert (result["oracle"], result["confirmed"]) == ("FUZZER", 0)
    assert "No finding." in ended.out
