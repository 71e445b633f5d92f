"""Tests of campaigns and replays on real servers: equal arms have no findings, and an injected bug has one."""

import re
from pathlib import Path

import pytest

from fuzz.campaign.schedule import RANGE_SIZE
from fuzz.generators.generator import all_generators
from fuzz.triage.reproducer.reproducer import parse
from tests.cli.bug import BUG, JOIN_AT_BOUNDS
from tests.cli.command import EQUALS, Command, json_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

ENOUGH = RANGE_SIZE * len(all_generators())  # cases: each generator has a range
SEED = "8"  # one of its first cases shows the bug; tests/injected_bugs measure any seed


def test_equal_arms_do_not_differ(pgduel: Command, tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    summary = json_of(pgduel("fuzz", *EQUALS, "--cases", str(ENOUGH), "--seed", "5", "--json", file), file, 0)
    assert ([each for each in summary["findings"] if not each["known"]], summary["complaints"]) == ([], [])
    assert summary["cases"] == ENOUGH
    assert summary["seed"] == 5
    assert summary["statements_judged"] > 200
    assert summary["valid_share"] >= 0.97
    assert summary["canaries"]["planted"] == summary["canaries"]["caught"] >= 3
    assert summary["reach"]["explained"] > 0
    assert summary["cpu_seconds"]["server"] > summary["cpu_seconds"]["client"] > 0
    assert set(summary["generators"]) >= set(all_generators())  # and sources, by their share of CPU time
    assert set(summary["left_out"]) <= {"sqlancer"}  # its jar is no requirement of the tests
    assert summary["arms"]["a"]["build"] == summary["arms"]["b"]["build"]
    assert summary["arms"]["a"]["base"]["version"].startswith("17.")
    assert re.fullmatch("[0-9a-f]{64}", summary["arms"]["a"]["base"]["sha256"])
    assert "none" not in pgduel("list", "campaigns").out


def test_a_single_arm_is_judged(pgduel: Command, tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    ended = pgduel("fuzz", "--arm", "upstream", "--cases", "14", "--seed", "5", "--json", file)
    summary = json_of(ended, file, 0)
    assert ([each for each in summary["findings"] if not each["known"]], summary["complaints"]) == ([], [])
    (idle,) = summary["not_compared"]
    assert "result" in idle
    assert idle.endswith(": not used, because there is no arm to compare upstream with")
    assert summary["not_compared"][0] in ended.out
    assert summary["canaries"]["planted"] == summary["canaries"]["caught"] >= 10
    assert summary["statements_judged"] > 100
    assert any(each["plans"]["shapes"] > 1 for each in summary["generators"].values())


def test_two_arms_of_one_build_are_refused_unless_the_options_say_so(pgduel: Command) -> None:
    ended = pgduel("fuzz", "--arm", "a=upstream", "--arm", "b=")
    assert ended.status == 2
    assert re.match(r"pgduel: arms a and b are the same build \(\w+\)", ended.err)


MISSING_CANARY = """
import sys
from fuzz.cli import main
from oracles.counters import Counters
from oracles.model.oracle import Agree
Counters.judge = lambda *_: (Agree(1),)
sys.argv[1:] = {arguments}
main()
"""


def test_a_missed_canary_ends_the_campaign_before_its_first_case(pgduel: Command, tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    script = MISSING_CANARY.format(arguments=["fuzz", *EQUALS, "--cases", "1", "--json", str(file)])
    ended = pgduel.run(["-c", script])
    summary = json_of(ended, file, 3)
    assert summary["canaries"]["caught"] < summary["canaries"]["planted"]
    assert summary["cases"] == 0
    assert ended.err.startswith("pgduel: canaries missed by counters (")


def test_a_patch_that_does_not_apply_is_named(pgduel: Command, tmp_path: Path) -> None:
    patch = tmp_path / "old.patch"
    patch.write_text("--- a/COPYRIGHT\n+++ b/COPYRIGHT\n@@ -1 +1 @@\n-nonsense\n+sense\n")
    ended = pgduel("fuzz", "--series", patch)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("pgduel: patch old.patch does not apply: COPYRIGHT, hunk 1 of 1 at line 1")


def test_a_bug_is_found_reduced_and_replayed(pgduel: Command, bugged: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    what = (*bugged, "--generator", "partitioned_joins", "--stop-at-first", "--minutes", "5", "--seed", SEED)
    summary = json_of(pgduel("fuzz", *what, "--json", file), file, 1)
    found = summary["findings"][0]
    assert found["arms"] == ["patched", "bugged"]
    reproducer = Path(found["reproducer"])
    assert found["blame"]["patches"] == [BUG.name]  # needs no build: the prefix before it is the other arm
    assert f"\n--   blame     {BUG.name}, number " in reproducer.read_text()
    assert found["shown"][0] == found["shown"][1]
    assert [bug["findings"] for bug in summary["bugs"]] == [[each["fingerprint"]] for each in summary["findings"]]
    assert pgduel("replay", reproducer, *bugged).status == 1
    assert pgduel("replay", reproducer, *EQUALS).status == 0
    by_name = pgduel("replay", found["fingerprint"])  # the store has its arms
    assert by_name.status == 1
    assert f"It still differs: finding {found['fingerprint']}." in by_name.out
    assert found["fingerprint"] in pgduel("list", "findings").out
    again = tmp_path / "blame.json"
    assert json_of(pgduel("blame", found["fingerprint"], "--json", again), again, 0)["patches"] == [BUG.name]
    text = pgduel("report", "--as", "markdown").out
    assert "# 1 distinct bug\n" in text
    assert f"- to blame: `{BUG.name}, number " in text
    page = Path(pgduel("report").out.strip())
    assert page == tmp_path / "campaigns" / "1" / "pgduel-1.html"
    assert f'<td class="text">{BUG.name}</td>' in page.read_text()
    assert "Bloom filter" in page.read_text()  # its reach: the arms have the feature
    handed_on = pgduel("show", found["fingerprint"], "--as", "sql")
    assert parse(handed_on.out) == parse(reproducer.read_text())


def test_a_users_script_is_judged(pgduel: Command, bugged: tuple[str, ...], tmp_path: Path) -> None:
    script = tmp_path / "mine.sql"
    script.write_text(JOIN_AT_BOUNDS)
    differing = pgduel("replay", script, *bugged)
    assert (differing.status, "It differs." in differing.out) == (1, True)
    assert pgduel("replay", script, *EQUALS).status == 0


def test_the_outvoted_one_of_three_arms_is_the_suspect(
    pgduel: Command, bugged: tuple[str, ...], tmp_path: Path
) -> None:
    script = tmp_path / "mine.sql"
    script.write_text(JOIN_AT_BOUNDS)
    judged = pgduel("replay", script, *bugged, "--arm", "third=patched")
    assert "suspect: bugged, as patched and third agree" in judged.out


def test_a_case_is_replayed_from_its_seed(pgduel: Command) -> None:
    ended = pgduel("replay", "1/partitioned_joins/0", *EQUALS)
    assert (ended.status, "It does not differ." in ended.out) == (0, True)


def test_a_script_that_is_no_sql_is_refused(pgduel: Command, tmp_path: Path) -> None:
    script = tmp_path / "wrong.sql"
    script.write_text("SELECT 1;\nSELEC 2;\n")
    ended = pgduel("replay", script, *EQUALS)
    assert ended.status == 2
    assert "statement 2 fails on every arm: syntax error" in ended.err


def test_psql_on_an_arm(pgduel: Command) -> None:
    ended = pgduel("shell", "upstream", "-Atc", "SELECT current_setting('server_version_num')::int / 10000")
    assert (ended.status, ended.out.splitlines()[-1]) == (0, "17")
    unknown = pgduel("shell", "absent", *EQUALS)
    assert (unknown.status, unknown.err) == (2, "pgduel: no arm is called 'absent'; give one of a, b\n")
