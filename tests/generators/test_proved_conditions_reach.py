"""Tests of the reach of `proved_conditions` on a real server: successful statements, and scans of partial indexes."""

from typing import ClassVar

import pytest

from fuzz.execution.executor import Executor
from tests.generators.census import Census, Reach, census_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASES = 60


@pytest.fixture(scope="module")
def census(executor: Executor) -> Census:
    return census_of(executor, "proved_conditions", CASES, {})


class TestReach(Reach):
    queries = CASES * 15
    failing = 0
    shares: ClassVar = {"rows": 0.8, "index_scan": 0.1}
    paths = ("bitmap_scan", "append.live>=2", "index_only_scan.heap_fetches")
