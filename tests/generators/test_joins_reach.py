"""Tests of the reach of `partitioned_joins` on a real server: successful statements, and executed plans."""

from typing import ClassVar

import pytest

from fuzz.execution.executor import Executor
from tests.generators.census import Census, Reach, census_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASES = 120
FAMILIES = {
    "outer hash join": {f"hash_join.{kind}" for kind in ("left", "right", "full", "anti", "right_anti")},
    "grown": {"hash_join.grown_batches", "hash_join.grown_buckets"},
}


@pytest.fixture(scope="module")
def census(executor: Executor) -> Census:
    return census_of(executor, "partitioned_joins", CASES, FAMILIES)


class TestReach(Reach):
    queries = CASES * 20
    shares: ClassVar = {
        "rows": 0.75,
        "hash_join": 0.60,
        "outer hash join": 0.20,
        "append.live>=2": 0.15,
        "hash_join.multi_batch": 0.05,
        "grown": 0.02,
        "parallel_hash": 0.05,
        "partitionwise_join": 0.02,
        "runtime_pruning": 0.02,
        "nested_loop": 0.10,
        "merge_join": 0.03,
        "index_scan": 0.03,
        "full": 0.03,
        "semi": 0.02,
        "anti": 0.02,
    }
    paths = (
        *("hash_join.inner", "hash_join.left", "hash_join.right", "hash_join.full"),
        *("hash_join.semi", "hash_join.anti", "hash_join.right_anti"),
        *("merge_join.inner", "merge_join.left", "merge_join.right", "merge_join.full", "merge_join.anti"),
        *("nested_loop.inner", "nested_loop.left", "nested_loop.semi", "nested_loop.anti"),
        *("hash_join.grown_batches", "hash_join.grown_buckets", "partitionwise_aggregate", "merge_append"),
        *("memoize.hits", "incremental_sort", "gather_merge", "initplan", "subplan", "window", "cte_scan"),
        *("set_operation", "bitmap_scan", "hash_aggregate.spilled"),
    )
