"""Tests of the reach of `aged_indexes` on a real server: successful statements, and executed plans."""

from typing import ClassVar

import pytest

from fuzz.execution.executor import Executor
from tests.generators.census import Census, Reach, census_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASES = 60


@pytest.fixture(scope="module")
def census(executor: Executor) -> Census:
    return census_of(executor, "aged_indexes", CASES, {})


class TestReach(Reach):
    queries = CASES * 15
    failing = 0
    shares: ClassVar = {
        "rows": 0.6,
        "index_scan": 0.3,
        "index_only_scan": 0.1,
        "bitmap_scan": 0.15,
    }
    paths = (
        "index_only_scan.heap_fetches",
        "index_scan.backward",
        "parallel",
    )
