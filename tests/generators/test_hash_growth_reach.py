"""Tests of the reach of `hash_growth` on a real server: hash tables that outgrow their planned size."""

import pytest

from fuzz.campaign.reach import EXPLAINED
from fuzz.execution.executor import Executor
from tests.generators.census import Census, census_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASES = 200
FAMILIES = {"grown": {"hash_join.grown_batches", "hash_join.grown_buckets"}}


@pytest.fixture(scope="module")
def census(executor: Executor) -> Census:
    return census_of(executor, "hash_growth", CASES, FAMILIES)


def test_steps_succeed(census: Census) -> None:
    assert len(census.failed) <= census.steps / 500, census.failed


def test_every_query_that_succeeded_is_counted(census: Census) -> None:
    assert census.counters[EXPLAINED] >= census.queries - len(census.failed)
    assert census.queries >= CASES * 3


@pytest.mark.parametrize(
    ("counter", "least"),
    [
        ("rows", 0.75),
        ("hash_join", 0.75),
        ("grown", 0.10),
        ("hash_join.grown_buckets", 0.03),
        ("hash_join.grown_batches", 0.08),
        ("hash_join.multi_batch", 0.15),
        ("parallel", 0.20),
        ("parallel_hash", 0.08),
        ("hash_join.left", 0.08),
        ("hash_join.right", 0.08),
        ("hash_join.full", 0.04),
        ("hash_join.semi", 0.02),
        ("hash_join.anti", 0.02),
        ("hash_join.right_anti", 0.02),
        ("hash_aggregate", 0.02),
    ],
)
def test_enough_statements_take_the_path(census: Census, counter: str, least: float) -> None:
    assert census.share(counter) >= least, census.counters.most_common()


@pytest.mark.parametrize(
    "counter",
    [
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
            )
        ),
        *(f"skew.{skew}+multi_batch" for skew in ("unique", "repeated", "single", "unsplittable")),
        *(f"memory.{memory}+multi_batch" for memory in ("64kB", "256kB", "snug")),
        *(f"nulls.{percent}+multi_batch" for percent in (0, 1, 50)),
        *(f"rescan.{how}+multi_batch" for how in ("none", "lateral", "subplan", "loop", "memoize", "cte")),
        *("hash_join.grown_both", "parallel_hash.multi_batch", "parallel_hash.left_early", "pooled+multi_batch"),
    ],
)
def test_each_path_is_taken(census: Census, counter: str) -> None:
    assert census.counters[counter] > 0, census.counters.most_common()
