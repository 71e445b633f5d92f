"""Test of arms whose catalogs differ: a new function, shifted OIDs and another catalog version are no findings."""

from pathlib import Path

import pytest

from tests.cli.command import Command, json_of

pytestmark = [pytest.mark.servers, pytest.mark.long(group="changed catalogs"), pytest.mark.timeout(2400)]

PATCHES = sorted(Path(__file__).with_name("changed_catalogs").glob("*.patch"))
# A generator, and all sources without requirements. Those with statements from the catalogs read them on the reference.
WORKLOADS = ("few_rows", "qpg", "regress", "sqlsmith", "typed")
CASES = 150


def test_arms_with_other_catalogs_do_not_differ(pgduel: Command, tmp_path: Path) -> None:
    assert len(PATCHES) == 2
    changed = ",".join(map(str, PATCHES))
    workloads = [option for each in WORKLOADS for option in ("--generator", each)]
    file = tmp_path / "summary.json"
    arms = ("--arm", "upstream", "--arm", f"changed={changed}")
    ended = pgduel("fuzz", *arms, *workloads, "--cases", str(CASES), "--seed", "3", "--json", file)
    summary = json_of(ended, file, 0)
    assert ([each for each in summary["findings"] if not each["known"]], summary["complaints"]) == ([], [])
    assert summary["cases"] == CASES
    assert set(summary["generators"]) == set(WORKLOADS)
    assert summary["statements_judged"] > 5000
