"""Tests of the reach of `many_partitions` on a real server: successful statements, and executed plans."""

import pytest

from fuzz.campaign.reach import EXPLAINED
from fuzz.execution.executor import Executor
from tests.generators.census import Census, census_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASES = 80


@pytest.fixture(scope="module")
def census(executor: Executor) -> Census:
    return census_of(executor, "many_partitions", CASES, {})


def test_steps_succeed(census: Census) -> None:
    assert len(census.failed) <= census.steps / 500, census.failed


def test_every_query_that_succeeded_is_counted(census: Census) -> None:
    assert census.counters[EXPLAINED] >= census.queries - len(census.failed)
    assert census.queries >= CASES * 3


@pytest.mark.parametrize(
    ("counter", "least"),
    [
        ("rows", 0.70),
        ("append.live>=2", 0.50),
        ("partitionwise_join", 0.02),
        ("merge_join", 0.15),
        ("nested_loop", 0.15),
        ("hash_join", 0.20),
        ("index_scan", 0.10),
        ("runtime_pruning", 0.03),
        ("children>=32", 0.10),
        ("children>=256", 0.02),
    ],
)
def test_enough_statements_take_the_path(census: Census, counter: str, least: float) -> None:
    assert census.share(counter) >= least, census.counters.most_common()


@pytest.mark.parametrize(
    "counter",
    [
        *("merge_append", "partitionwise_aggregate", "incremental_sort", "window", "foreign_scan", "row_locks"),
        *("semi", "anti", "full", "merge_join.inner", "merge_join.left", "nested_loop.left"),
    ],
)
def test_each_path_is_taken(census: Census, counter: str) -> None:
    assert census.counters[counter] > 0, census.counters.most_common()
