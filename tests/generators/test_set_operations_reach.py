"""Tests of the reach of `set_operations` on a real server: successful statements, and executed plans."""

from typing import ClassVar

import pytest

from fuzz.execution.executor import Executor
from tests.generators.census import Census, Reach, census_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASES = 60


@pytest.fixture(scope="module")
def census(executor: Executor) -> Census:
    return census_of(executor, "set_operations", CASES, {})


class TestReach(Reach):
    queries = CASES * 15
    failing = 0
    shares: ClassVar = {
        "rows": 0.8,
        "set_operation": 0.4,
        "append.live>=2": 0.3,
        "hash_aggregate": 0.1,
        "index_scan": 0.1,
    }
    paths = (
        "merge_append",
        "incremental_sort",
        "bitmap_scan",
        "parallel",
        "subplan",
    )
