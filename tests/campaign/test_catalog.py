"""Tests of `last_seed` on numbered campaigns."""

from contextlib import closing
from pathlib import Path

import pytest

from fuzz.campaign.catalog import last_seed, new_campaign
from fuzz.campaign.plan import Plan
from fuzz.campaign.store import FILE, Store
from fuzz.servers.arm_options import ArmOptions

ARMS = {"master": {"build": "abc"}, "patched": {"build": "def"}}


@pytest.fixture(autouse=True)
def campaigns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PGDUEL_CAMPAIGNS", str(tmp_path))
    return tmp_path


def begin(seed: int, arms: dict[str, dict[str, str]]) -> None:
    plan = Plan(seed, {"copy_batches": 1}, None, 1, stop_at_first=False, arms=ArmOptions())
    with closing(Store(new_campaign())) as store:
        store.begin(plan, arms)


def test_the_last_seed_is_of_campaigns_on_the_same_builds(campaigns: Path) -> None:
    assert last_seed(ARMS) == 0
    for seed in (1, 7, 3):
        begin(seed, ARMS)
    begin(99, {"master": {"build": "xyz"}})
    assert last_seed(ARMS) == 7


def test_campaigns_that_cannot_be_read_do_not_count(campaigns: Path) -> None:
    begin(2, ARMS)
    (new_campaign() / FILE).write_bytes(b"no database, but long enough to look like one" * 100)
    with closing(Store(new_campaign())):
        pass  # ended before it began
    assert last_seed(ARMS) == 2
