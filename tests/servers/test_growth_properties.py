"""Hash growth as a property of hash buckets' own series: whatever is generated, they agree. A failing case shrinks."""

from collections.abc import Iterator

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from fuzz.campaign.trial import try_case
from fuzz.engines.property_based import cases, load_profile
from fuzz.execution.stage import Stage
from fuzz.generators.hash_growth import HashGrowth
from fuzz.servers.arm import ArmSpec, open_arms, shipped_series
from fuzz.servers.base import Base
from fuzz.servers.flavor import FLAVORS
from oracles.oracle import all_oracles
from tests.unit.observed import seated

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

ARMS = ("master", "patched", "upstream")

load_profile()


@pytest.fixture(scope="module")
def stage(base: Base) -> Iterator[Stage]:
    specs = [ArmSpec(name, base, shipped_series(name, base), FLAVORS["assert"]) for name in ARMS]
    with open_arms(specs, print) as arms, Stage(arms, "growth") as stage:
        yield stage


@given(data=st.data())
def test_arms_agree(stage: Stage, data: st.DataObject) -> None:
    case = data.draw(cases(HashGrowth()))
    # Plans and costs are not equal: upstream's are those of a bucket for each row.
    oracles = [oracle for oracle in all_oracles() if not oracle.needs_equal_plans]
    trial = try_case(stage, seated(oracles, ARMS), case)
    for finding in trial.findings:
        note(f"{finding.oracle}: {finding.summary} ({finding.origin})")
    assert trial.findings == ()
