"""Tests of the reach of `many_partitions` on a real server: successful statements, and executed plans."""

from typing import ClassVar

import pytest

from fuzz.execution.executor import Executor
from tests.generators.census import Census, Reach, census_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASES = 80


@pytest.fixture(scope="module")
def census(executor: Executor) -> Census:
    return census_of(executor, "many_partitions", CASES, {})


class TestReach(Reach):
    queries = CASES * 3
    shares: ClassVar = {
        "rows": 0.70,
        "append.live>=2": 0.50,
        "partitionwise_join": 0.02,
        "merge_join": 0.15,
        "nested_loop": 0.15,
        "hash_join": 0.20,
        "index_scan": 0.10,
        "runtime_pruning": 0.03,
        "children>=32": 0.10,
        "children>=256": 0.02,
    }
    paths = (
        *("merge_append", "partitionwise_aggregate", "incremental_sort", "window", "foreign_scan", "row_locks"),
        *("semi", "anti", "full", "merge_join.inner", "merge_join.left", "nested_loop.left"),
    )
