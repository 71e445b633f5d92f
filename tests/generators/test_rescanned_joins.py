"""Tests of the generator `rescanned_joins` without servers: its joins, parameters, and shrinking."""

import random

import pytest

from fuzz.generators.generator import Scale
from fuzz.generators.rescanned_joins import RescannedJoins
from oracles.model.case import Step
from tests.generators.shrinking import assert_shrinks


@pytest.fixture(scope="module")
def queries() -> list[Step]:
    return [step for n in range(40) for step in RescannedJoins().generate(random.Random(f"unit/{n}"), Scale()).steps]


@pytest.mark.parametrize(
    "text",
    [
        *("LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "EXISTS (SELECT FROM", "NOT IN", "RECURSIVE", "LATERAL", "OFFSET 5"),
        *("AS MATERIALIZED", "row_number()", "UNION ALL", "DISTINCT", "GROUP BY k", "ARRAY(", "= ANY"),
    ],
)
def test_queries_have(queries: list[Step], text: str) -> None:
    assert any(text in step.sql for step in queries)


def test_most_joins_depend_on_the_outer_row(queries: list[Step]) -> None:
    assert sum(" o.x" in step.sql.partition("FROM")[2] for step in queries) > 0.7 * len(queries)


def test_some_scenes_sort_on_disk() -> None:
    scenes = [
        " ".join(step.sql for step in RescannedJoins().generate(random.Random(f"unit/{n}"), Scale()).scene)
        for n in range(40)
    ]
    on_disk = [scene for scene in scenes if "SET work_mem = '64kB'" in scene]
    assert 0 < len(on_disk) < len(scenes) / 2
    assert 0 < sum("enable_material = off" in scene for scene in on_disk) < len(on_disk)
    assert all("enable_hashjoin = off" in scene for scene in on_disk)


def test_a_failing_case_shrinks() -> None:
    assert_shrinks(RescannedJoins(), scene=6, characters=320, construct="NOT EXISTS")
