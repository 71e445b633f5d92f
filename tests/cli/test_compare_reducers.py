"""Tests of the comparison of reducers on a finding: sizes, and reducers that are not installed."""

from pathlib import Path

import pytest

from fuzz.campaign.store import Store
from oracles.model.case import Case, Step
from tests.cli.command import Command, json_of
from tests.cli.unreduced import QUERY, SCENE, unreduced

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASE = Case("by_hand", (*SCENE, *(Step(f"CREATE TABLE t{number} (a int)") for number in range(8))), (QUERY,))


def test_reducers_are_compared(pgduel: Command, bugged: tuple[str, ...], tmp_path: Path) -> None:
    unreduced(pgduel, bugged, CASE)
    file = tmp_path / "summary.json"
    (comparison,) = json_of(pgduel("bench", "reduction", "1", "--seconds", "60", "--json", file), file, 0)
    outcomes = {each["name"]: each for each in comparison["outcomes"]}
    sizes = {name: each["size"] for name, each in outcomes.items() if each["size"] is not None}
    whole, ours, lines = (sizes[name] for name in ("the whole case", "pgduel", "picire"))
    assert whole["statements"] == len(CASE.all_steps)
    for measure in ("statements", "characters", "nodes"):
        assert ours[measure] <= lines[measure] < whole[measure]
    assert outcomes["sqlreduce"]["why"]  # sqlreduce needs an error, and there is none
    assert "cvise" in sizes or "apt-get install cvise" in outcomes["cvise"]["why"]
    assert all(outcomes[name]["tries"] > 10 for name in sizes if name != "the whole case")


def test_a_campaign_without_findings_is_refused(pgduel: Command) -> None:
    directory = pgduel.campaigns / "1"
    directory.mkdir(parents=True)
    Store(directory).close()
    done = pgduel("bench", "reduction", "last")
    assert done.status == 2
    assert done.err == "pgduel: there is no finding to reduce in last; see pgduel list campaigns\n"


def test_an_unknown_reducer_is_refused(pgduel: Command) -> None:
    done = pgduel("bench", "reduction", "1", "--by", "absent")
    assert done.status == 2
    assert done.err == "pgduel: unknown reducer in --by absent; give one of pgduel, cvise, picire, sqlreduce\n"
