"""Tests of numbered campaigns, and of `last_seed`."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from fuzz.campaign.catalog import all_campaigns, find_finding, last_seed, new_campaign
from fuzz.campaign.continuous import runs_of
from fuzz.campaign.plan import Plan
from fuzz.campaign.postgresql import shared
from fuzz.campaign.schema import StoreFull
from fuzz.campaign.sqlite import FILE
from fuzz.campaign.store import Store
from fuzz.errors import CaseError, StorageError
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


def test_a_store_that_may_be_readable_later_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object, *_arguments: object) -> None:
        raise StoreFull("the store is full")

    begin(2, ARMS)
    monkeypatch.setattr(Store, "read", full)
    with pytest.raises(StoreFull):
        last_seed(ARMS)
    with pytest.raises(StoreFull):
        runs_of("nightly")
    reasons: list[str] = []
    assert runs_of("nightly", reasons.append) == ()
    assert reasons == ["the store is full"]


def test_findings_are_found_beside_a_campaign_that_cannot_be_read(
    campaigns: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if shared():
        pytest.skip("the store is no file")
    begin(1, ARMS)
    (campaigns / "2").mkdir()
    (campaigns / "2" / FILE).write_text("no database" * 100)
    with pytest.raises(CaseError, match="no finding is called"):
        find_finding("0123456789ab")
    assert capsys.readouterr().err.count(f"{campaigns}/2/{FILE} cannot be used: file is not a database") == 1
    with pytest.raises(StorageError, match="file is not a database"):
        find_finding("2/0123456789ab")
