"""Tests of the doubts of isolation specs in the store, without servers."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import pytest

from fuzz.campaign.catalog import find_doubt, new_campaign, opened
from fuzz.campaign.plan import Plan
from fuzz.cli.isolation import _Run
from fuzz.engines.isolation import read_spec
from fuzz.errors import CaseError
from fuzz.report.campaign_report import report_of
from fuzz.servers.arm_options import ArmOptions
from tests.engines.test_isolation import SPEC, StubTester, steady

ARMS = ArmOptions(arms=("a=upstream", "b=upstream"))
REASON = "b differed from a once and never again"


@pytest.fixture
def campaign(campaigns: Path) -> Path:
    """Return a campaign whose only spec had another output in one run."""
    directory = new_campaign()
    run_testers = (StubTester("a", steady), StubTester("b", lambda run: "b" if run == 1 else "a"))
    with opened(directory) as store, ThreadPoolExecutor(2) as pool:
        store.begin(Plan(1, {"isolation": 1}, 5, None, stop_at_first=False, arms=ARMS), {})
        _Run(run_testers, Mock(), ARMS.command_line(), store).execute([SPEC], 600, pool)
    return directory


def test_a_doubt_is_stored_with_both_outputs_and_its_spec(campaign: Path) -> None:
    with opened(campaign) as store:
        (doubt,) = store.doubts()
    assert (doubt.oracle, doubt.kind, doubt.reason) == ("isolation", "unstable", REASON)
    assert (doubt.case_id, doubt.sides) == (f"{SPEC.name} under {SPEC.modes}", ("a", "b"))
    spec = read_spec(campaign / f"{doubt.name}.spec")
    assert spec.modes == SPEC.modes
    assert spec.text.endswith(SPEC.text)
    assert "#   -a\n#   +b\n" in spec.text


def test_a_replay_of_a_doubt_names_the_command_for_its_spec(campaign: Path) -> None:
    with opened(campaign) as store:
        (doubt,) = store.doubts()
    spec = campaign / f"{doubt.name}.spec"
    text = spec.read_text()
    spec.unlink()  # as on another machine that uses the store
    with pytest.raises(CaseError, match=f"isolation {spec} --arm a=upstream --arm b=upstream$"):
        find_doubt(doubt.name)
    assert spec.read_text() == text


def test_a_report_counts_doubts_of_specs(campaign: Path) -> None:
    report = report_of(campaign)
    assert [(each.oracle, each.reason, each.count, len(each.stored)) for each in report.doubts] == [
        ("isolation", REASON, 1, 1)
    ]
    assert report.counters.cases["isolation"] == 1
