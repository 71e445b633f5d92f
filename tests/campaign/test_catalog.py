"""Tests of numbered campaigns, and of `last_seed`."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from fuzz.campaign.catalog import all_campaigns, last_seed, new_campaign
from fuzz.campaign.plan import Plan
from fuzz.campaign.store import Store
from fuzz.servers.arm_options import ArmOptions

pytestmark = pytest.mark.usefixtures("campaigns")

ARMS = {"master": {"build": "abc"}, "patched": {"build": "def"}}


def begin(seed: int, arms: dict[str, dict[str, str]]) -> None:
    plan = Plan(seed, {"copy_batches": 1}, None, 1, stop_at_first=False, arms=ArmOptions())
    with closing(Store(new_campaign())) as store:
        store.begin(plan, arms)


def test_campaigns_that_begin_at_the_same_time_have_different_numbers(campaigns: Path) -> None:
    begin(1, ARMS)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda seed: begin(seed, ARMS), range(2, 10)))
    assert all_campaigns() == tuple(campaigns / str(number) for number in range(1, 10))


def test_the_last_seed_is_of_campaigns_on_the_same_builds() -> None:
    assert last_seed(ARMS) == 0
    for seed in (1, 7, 3):
        begin(seed, ARMS)
    begin(99, {"master": {"build": "xyz"}})
    assert last_seed(ARMS) == 7


def test_campaigns_that_cannot_be_read_do_not_count() -> None:
    begin(2, ARMS)
    with closing(Store(new_campaign())) as store:
        store.write(text("DROP TABLE campaign"))
    with closing(Store(new_campaign())):
        pass  # ended before it began
    assert last_seed(ARMS) == 2
