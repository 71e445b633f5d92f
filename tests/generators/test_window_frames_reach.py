"""Tests of the reach of `window_frames` on a real server: successful statements, and executed plans."""

import pytest

from fuzz.execution.executor import Executor
from tests.generators.census import Census, census_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASES = 60


@pytest.fixture(scope="module")
def census(executor: Executor) -> Census:
    return census_of(executor, "window_frames", CASES, {})


def test_statements_succeed(census: Census) -> None:
    assert census.queries >= CASES * 15
    assert not census.failed, census.failed


@pytest.mark.parametrize(
    ("counter", "least"),
    [
        ("rows", 0.9),
        ("window", 0.9),
        ("window.ended_early", 0.1),
        ("window.spilled", 0.015),
        ("incremental_sort", 0.01),
    ],
)
def test_enough_statements_take_the_path(census: Census, counter: str, least: float) -> None:
    assert census.share(counter) >= least, census.counters.most_common()


@pytest.mark.parametrize("counter", ["index_scan", "parallel", "append.live>=2"])
def test_each_path_is_taken(census: Census, counter: str) -> None:
    assert census.counters[counter] > 0, census.counters.most_common()
