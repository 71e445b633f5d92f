"""Property tests of each generator on real servers: arms agree on all cases. Hypothesis shrinks a failing one."""

from collections.abc import Iterator

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from fuzz.engines.property_based import cases, profile
from fuzz.execution.executor import Executor
from fuzz.execution.judging import judge_case
from fuzz.generators.generator import Generator, all_generators
from fuzz.servers.arm import ArmSpec, open_arms, shipped_series
from fuzz.servers.base import Base
from fuzz.servers.flavor import FLAVORS
from oracles.model.oracle import Oracle, all_oracles
from tests.features import SHIPPED
from tests.oracles.observed import assigned

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

GENERATORS = all_generators()
ORACLES: tuple[Oracle, ...] = all_oracles()
ARMS = ("master", "patched")


@pytest.fixture(scope="module")
def executor(base: Base) -> Iterator[Executor]:
    specs = [ArmSpec(name, base, shipped_series(name, base), FLAVORS["assert"]) for name in ARMS]
    with open_arms(specs, print) as arms, Executor(arms, "properties") as executor:
        yield executor


@pytest.mark.parametrize("generator", GENERATORS.values(), ids=list(GENERATORS))
@profile()
@given(data=st.data())
def test_arms_agree(generator: Generator, executor: Executor, data: st.DataObject) -> None:
    case = data.draw(cases(generator, features=SHIPPED))
    judged = judge_case(executor, assigned([oracle.of(SHIPPED) for oracle in ORACLES], ARMS), case)
    for finding in judged.findings:
        note(f"{finding.oracle}: {finding.summary} ({finding.origin})")
    assert judged.findings == ()
