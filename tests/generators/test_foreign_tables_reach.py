"""Tests of the reach of `foreign_tables` on a real server: successful statements, and executed plans."""

import random
from typing import ClassVar

import pytest

from fuzz.execution.executor import Executor
from fuzz.generators.foreign_tables.files import file_relation, refused_file
from oracles.model.case import Case, Kind, Step
from oracles.model.observation import Observation, Outcome, Run
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


COLUMNS = "k int NOT NULL, a int, b text, c numeric(10, 2) DEFAULT 1, d date, e int[]"


def observed(executor: Executor, steps: list[Step]) -> list[tuple[Step, Observation]]:
    run = Run("only", ())
    case = Case("test", (), tuple(steps))
    return list(zip(steps, executor.observe(case, [run])[run].steps, strict=True))


def test_file_tables_of_all_formats_are_readable(executor: Executor) -> None:
    rng = random.Random(5)
    count = Step("SELECT (count(k) > 0 AND count(a) <= count(k) AND count(c) = count(k))::text FROM p1", Kind.QUERY)
    for _ in range(20):
        seen = observed(executor, [*file_relation(rng, COLUMNS, 100, 12), count, Step("SELECT * FROM p1", Kind.QUERY)])
        assert [step.sql for step, each in seen if each.outcome is not Outcome.OK] == []
        assert seen[-2][1].rows[0].endswith(b"true")


def test_wrong_file_tables_are_refused_exactly_if_intended(executor: Executor) -> None:
    rng = random.Random(5)
    seen = observed(executor, [step for _ in range(60) for step in refused_file(rng)])
    assert [step.sql for step, each in seen if (each.outcome is Outcome.OK) == step.may_fail] == []
