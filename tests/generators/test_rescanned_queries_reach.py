"""Tests of the reach of `rescanned_queries` on a real server: successful statements, and the nodes that run."""

from typing import ClassVar

import pytest

from fuzz.execution.executor import Executor
from tests.generators.census import Census, Reach, census_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASES = 60


@pytest.fixture(scope="module")
def census(executor: Executor) -> Census:
    return census_of(executor, "rescanned_queries", CASES, {})


class TestReach(Reach):
    queries = CASES * 15
    failing = 0
    shares: ClassVar = {"rows": 0.9}
    paths = (
        *("subplan", "incremental_sort", "memoize.hits", "hash_aggregate.spilled", "window", "set_operation"),
        *("index_only_scan.heap_fetches", "bitmap_scan", "merge_append"),
    )
