"""Tests of the reach of `hash_growth` on a real server: hash tables that outgrow their planned size."""

from typing import ClassVar

import pytest

from fuzz.execution.executor import Executor
from tests.generators.census import Census, Reach, census_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASES = 200
FAMILIES = {"grown": {"hash_join.grown_batches", "hash_join.grown_buckets"}}


@pytest.fixture(scope="module")
def census(executor: Executor) -> Census:
    return census_of(executor, "hash_growth", CASES, FAMILIES)


class TestReach(Reach):
    queries = CASES * 3
    shares: ClassVar = {
        "rows": 0.75,
        "hash_join": 0.75,
        "grown": 0.10,
        "hash_join.grown_buckets": 0.03,
        "hash_join.grown_batches": 0.08,
        "hash_join.multi_batch": 0.15,
        "parallel": 0.20,
        "parallel_hash": 0.08,
        "hash_join.left": 0.08,
        "hash_join.right": 0.08,
        "hash_join.full": 0.04,
        "hash_join.semi": 0.02,
        "hash_join.anti": 0.02,
        "hash_join.right_anti": 0.02,
        "hash_aggregate": 0.02,
    }
    paths = (
        *(f"expected.{what}+multi_batch" for what in ("fewer", "more", "right")),
        *(
            f"way.{cause}+multi_batch"
            for cause in (
                "counted",
                "implied",
                "correlated",
                "beyond",
                "few",
                "many",
                "excluded",
                "groups",
                "claimed",
                "multiplied",
                "parameter",
                "shared_filter",
                "late_filter",
                "large",
                "stored_join",
            )
        ),
        *(f"skew.{skew}+multi_batch" for skew in ("unique", "repeated", "single", "unsplittable")),
        *(f"memory.{memory}+multi_batch" for memory in ("64kB", "256kB", "snug")),
        *(f"nulls.{percent}+multi_batch" for percent in (0, 1, 50)),
        *(f"rescan.{how}+multi_batch" for how in ("none", "lateral", "subplan", "loop", "memoize", "cte")),
        *("hash_join.grown_both", "parallel_hash.multi_batch", "parallel_hash.left_early", "pooled+multi_batch"),
    )
