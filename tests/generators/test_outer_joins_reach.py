"""Tests of the reach of `outer_joins` on a real server: joins in several batches."""

from typing import ClassVar

import pytest

from fuzz.execution.executor import Executor
from tests.generators.census import Census, Reach, census_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASES = 250
FAMILIES = {"outer or anti": {"left", "right", "full", "anti", "right_anti"}}


@pytest.fixture(scope="module")
def census(executor: Executor) -> Census:
    return census_of(executor, "outer_joins", CASES, FAMILIES)


class TestReach(Reach):
    queries = CASES * 3
    shares: ClassVar = {
        "rows": 0.75,
        "hash_join": 0.60,
        "outer or anti": 0.40,
        "hash_join.multi_batch": 0.25,
        "hash_join.grown_batches": 0.05,
        "parallel_hash": 0.05,
        "hash_join.left": 0.10,
        "hash_join.right": 0.10,
        "hash_join.full": 0.08,
        "hash_join.anti": 0.03,
        "hash_join.right_anti": 0.03,
        "hash_join.semi": 0.03,
        "partitionwise_join": 0.01,
    }
    paths = (
        *(f"rescan.{how}+multi_batch" for how in ("none", "lateral", "subplan", "loop", "memoize", "recursive", "cte")),
        *(f"join.{kind}+multi_batch" for kind in ("inner", "left", "right", "full", "semi", "anti")),
        *(f"skew.{skew}+multi_batch" for skew in ("uniform", "hot", "unsplittable")),
        *(f"memory.{memory}+multi_batch" for memory in ("64kB", "256kB", "1MB", "4MB")),
        *(f"nulls.{percent}+multi_batch" for percent in (0, 1, 50, 100)),
        *("pooled+multi_batch", "partitioned+multi_batch", "key.pair+multi_batch", "key.text_folded+multi_batch"),
        *("memoize.hits", "hash_join.grown_buckets", "gather_merge", "merge_join", "subplan", "initplan", "cte_scan"),
    )


@pytest.mark.parametrize("error", ["22012", "ended", "ended by 22012", "ended by 57014"])
def test_joins_end_with_each_error(census: Census, error: str) -> None:
    assert census.errors[error] > 0, census.errors
