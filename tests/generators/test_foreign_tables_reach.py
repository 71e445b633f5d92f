"""Tests of the reach of `foreign_tables` on a real server: successful statements, and executed plans."""

from typing import ClassVar

import pytest

from fuzz.execution.executor import Executor
from tests.generators.census import Census, Reach, census_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASES = 40


@pytest.fixture(scope="module")
def census(executor: Executor) -> Census:
    return census_of(executor, "foreign_tables", CASES, {})


class TestReach(Reach):
    queries = CASES * 10
    failing = 0
    shares: ClassVar = {"rows": 0.6, "foreign_scan": 0.6, "append.live>=2": 0.15}
    paths = ("nested_loop", "hash_join", "merge_join", "full", "anti", "row_locks", "subplan", "merge_append")
