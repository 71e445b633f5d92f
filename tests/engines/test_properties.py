"""Property tests of each generator on real servers: arms agree on all cases. Hypothesis shrinks a failing one.

A test also fails if its cases prove too little: if rows of no case could be compared, for example.
"""

from collections.abc import Iterator

import pytest
from hypothesis import given, note, target

from fuzz.campaign.counters import Counters
from fuzz.engines.property_based import cases, profile
from fuzz.execution.executor import Executor
from fuzz.execution.judging import judge_case
from fuzz.generators.generator import Generator, all_generators
from fuzz.servers.arm import ArmSpec, open_arms, shipped_series
from fuzz.servers.base import Base
from fuzz.servers.flavor import FLAVORS
from oracles.model.case import Case
from oracles.model.oracle import all_oracles
from tests.engines.examples import ARMS, count, explained_run, missing_proof
from tests.features import SHIPPED
from tests.oracles.observed import assigned

SECONDS = 22  # for an example, on a busy machine
GENERATORS = all_generators()
ORACLES = assigned([oracle.of(SHIPPED) for oracle in all_oracles()], ARMS)

pytestmark = [pytest.mark.servers, pytest.mark.timeout(SECONDS * profile().max_examples)]


@pytest.fixture(scope="module")
def executor(base: Base) -> Iterator[Executor]:
    specs = [ArmSpec(name, base, shipped_series(name, base), FLAVORS["assert"]) for name in ARMS]
    with open_arms(specs, print) as arms, Executor(arms, "properties") as executor:
        yield executor


@pytest.mark.parametrize("generator", GENERATORS.values(), ids=list(GENERATORS))
def test_arms_agree(generator: Generator, executor: Executor) -> None:
    counters = Counters()

    @profile(generator.name)
    @given(case=cases(generator, features=SHIPPED))
    def agree(case: Case) -> None:
        judged = judge_case(executor, ORACLES, case, executor.observe(case, [explained_run(case)]))
        for finding in judged.findings:
            note(f"{finding.oracle}: {finding.summary} ({finding.origin})")
        assert judged.findings == ()
        target(count(counters, case, judged), label="new plan shapes")

    agree()
    assert missing_proof(counters) == ()
