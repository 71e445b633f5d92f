"""Tests of the limits of a duel, on two real servers of one build."""

from collections.abc import Iterator, Sequence

import pytest

from fuzz.mutation.duel import case_ids, duel
from fuzz.servers.arm import Arm
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

CASES = 3


@pytest.fixture(scope="module")
def arms(build: Build) -> Iterator[Sequence[Arm]]:
    with Cluster(build, "one") as one, Cluster(build, "two") as two:
        yield Arm("one", build, one, ()), Arm("two", build, two, ())


@pytest.mark.parametrize(("limit", "cases"), [(0.0, 1), (600.0, CASES)])
def test_no_case_begins_after_the_limit(arms: Sequence[Arm], limit: float, cases: int) -> None:
    result = duel(arms, case_ids(1, {"set_operations": 1}, CASES), frozenset(), limit, lambda: False)
    assert (result.cases + result.failures, result.kill, result.limit) == (cases, None, limit)
    assert result.seconds is not None
    assert 0 < result.seconds < 600
