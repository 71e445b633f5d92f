"""Tests of the reach of `few_rows` on a real server: successful statements, and executed plans."""

from typing import ClassVar

import pytest

from fuzz.execution.executor import Executor
from tests.generators.census import Census, Reach, census_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASES = 30


@pytest.fixture(scope="module")
def census(executor: Executor) -> Census:
    return census_of(executor, "few_rows", CASES, {})


class TestReach(Reach):
    queries = CASES * 30
    failing = 0
    shares: ClassVar = {"rows": 0.5, "index_scan": 0.05}
    paths = ("subplan", "set_operation", "hash_aggregate")
