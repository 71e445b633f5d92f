"""Tests of the reach of `writing_ctes` on a real server: successful statements, and executed plans."""

from typing import ClassVar

import pytest

from fuzz.execution.executor import Executor
from tests.generators.census import Census, Reach, census_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASES = 60


@pytest.fixture(scope="module")
def census(executor: Executor) -> Census:
    return census_of(executor, "writing_ctes", CASES, {})


class TestReach(Reach):
    queries = CASES * 3
    failing = 0
    shares: ClassVar = {"rows": 0.9, "index_scan": 0.1}
    paths = ("hash_join", "merge_join", "bitmap_scan", "full")
