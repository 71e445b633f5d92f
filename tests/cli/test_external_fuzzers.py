"""Other programs look for bugs, and what they come across is judged: SQLsmith, SQLancer, isolation specs."""

import os
from pathlib import Path

import pytest

from fuzz.sources.sqlancer.jar import VARIABLE
from tests.cli.command import EQUALS, Command, told

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

# A setting that only one arm knows, which psql would show as an error on the other.
DIFFERS = """\
session s1
step ask { SHOW debug_force_hashjoin_bloom; }
session s2
step other { SELECT 1; }
"""


def test_sqlsmith_looks_for_crashes_and_finds_none(pgduel: Command, tmp_path: Path) -> None:
    ended = pgduel("sqlsmith", "--arm", "upstream", "--minutes", "0.1", "--seed", "3", "--json", tmp_path / "it.json")
    result = told(ended, tmp_path / "it.json", 0)
    assert result["statements"] > 50
    assert (result["seed"], result["crashes"], result["findings"]) == (3, 0, [])
    assert result["canaries"]["planted"] == result["canaries"]["caught"] >= 20
    assert "No finding." in ended.out


def test_isolation_specs_agree_where_builds_are_equal(pgduel: Command, tmp_path: Path) -> None:
    ended = pgduel("isolation", "merge-update", *EQUALS, "--minutes", "0.3", "--json", tmp_path / "it.json")
    result = told(ended, tmp_path / "it.json", 0)
    assert result["played"] >= 1
    assert result["findings"] == []
    assert result["canaries"] == {"planted": 2, "caught": 2, "retried": 0}


def test_isolation_specs_of_one_arm_are_judged_by_crashes(pgduel: Command, tmp_path: Path) -> None:
    ended = pgduel("isolation", "merge-update", "--arm", "upstream", "--minutes", "0.1", "--json", tmp_path / "it.json")
    result = told(ended, tmp_path / "it.json", 0)
    assert result["findings"] == []
    assert result["canaries"]["planted"] == result["canaries"]["caught"] == 1


BLIND = """
import sys
from fuzz.cli import main
from fuzz.engines import isolation
isolation.is_reproducible = lambda *_: False
sys.argv[1:] = {arguments}
main()
"""


def test_a_blind_comparison_of_specs_ends_the_run_before_it_begins(pgduel: Command, tmp_path: Path) -> None:
    file = tmp_path / "it.json"
    ended = pgduel.run(["-c", BLIND.format(arguments=["isolation", *EQUALS, "--json", str(file)])])
    result = told(ended, file, 3)
    assert (result["played"], result["canaries"]) == (0, {"planted": 2, "caught": 1, "retried": 0})
    assert ended.err.startswith("pgduel: canaries missed by isolation (drop_row)")


def test_a_spec_that_differs_becomes_a_spec_that_plays_again(pgduel: Command, tmp_path: Path) -> None:
    (tmp_path / "asks.spec").write_text(DIFFERS)
    arms = ("--arm", "upstream", "--arm", "patched", "--minutes", "5")
    result = told(
        pgduel("isolation", tmp_path / "asks.spec", *arms, "--json", tmp_path / "it.json"), tmp_path / "it.json", 1
    )
    (finding,) = result["findings"]
    assert finding["summary"] == "patched prints another result of asks than upstream"
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


def test_sqlancer_looks_and_reports_nothing_of_a_sound_server(pgduel: Command, tmp_path: Path) -> None:
    if VARIABLE not in os.environ:
        pytest.skip(f"SQLancer's jar is not there: {VARIABLE} names it")
    arguments = ("--oracle", "FUZZER", "--minutes", "0.5", "--seed", "5", "--json", tmp_path / "it.json")
    ended = pgduel("sqlancer", "--arm", "upstream", *arguments)
    result = told(ended, tmp_path / "it.json", 0)
    assert (result["oracle"], result["confirmed"]) == ("FUZZER", 0)
    assert "No finding." in ended.out
