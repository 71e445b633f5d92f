"""Tests of the reach of `rescanned_joins` on a real server: successful statements, and rescans of each type of join."""

from typing import ClassVar

import pytest

from fuzz.execution.executor import Executor
from tests.generators.census import Census, Reach, census_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASES = 60


@pytest.fixture(scope="module")
def census(executor: Executor) -> Census:
    return census_of(executor, "rescanned_joins", CASES, {})


class TestReach(Reach):
    queries = CASES * 15
    failing = 0
    shares: ClassVar = {"rows": 0.9, "hash_join": 0.3, "merge_join": 0.2, "nested_loop": 0.2}
    paths = (
        *(f"kept_table.{kind}" for kind in ("inner", "left", "right", "full", "semi", "anti", "right_anti")),
        *(f"rebuilt_table.{kind}" for kind in ("inner", "left", "right", "full", "semi", "anti", "right_anti")),
        *(f"sorted_on_disk.{kind}" for kind in ("inner", "left", "right", "full", "semi", "anti")),
        "runtime_pruning",
        "hash_join.multi_batch",
        "hash_aggregate",
        "incremental_sort",
        "cte_scan",
        "window",
        "memoize",
    )
