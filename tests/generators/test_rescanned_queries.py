"""Tests of the generator `rescanned_queries` without servers: its parameters, and shrinking."""

import random

import pytest

from fuzz.generators.generator import Scale
from fuzz.generators.rescanned_queries import RescannedQueries
from oracles.model.case import Step
from tests.generators.shrinking import assert_shrinks


@pytest.fixture(scope="module")
def queries() -> list[Step]:
    return [step for n in range(40) for step in RescannedQueries().generate(random.Random(f"unit/{n}"), Scale()).steps]


@pytest.mark.parametrize(
    "text",
    [
        *("LIMIT coalesce(o.x, ", "LIMIT o.x", "OFFSET coalesce(o.x, ", "coalesce(o.x, 1) PRECEDING", "EXCLUDE TIES"),
        *("FILTER (WHERE x = o.x)", "ROLLUP", "HAVING count(*)", "EXCEPT ALL", "INTERSECT ALL", "DISTINCT ON (k)"),
        *("k < o.x", "k IN (o.x, ", "r IS NOT NULL", "LEFT JOIN pairs AS c", "LATERAL", "EXISTS (", "UNION ALL"),
    ],
)
def test_queries_have(queries: list[Step], text: str) -> None:
    assert any(text in step.sql for step in queries)


def test_most_queries_depend_on_the_outer_row(queries: list[Step]) -> None:
    assert sum("o.x" in step.sql.removeprefix("SELECT o.x, ") for step in queries) > 0.7 * len(queries)


def test_queries_depend_on_one_row_and_on_decimal_places(queries: list[Step]) -> None:
    assert {"single", "spelled"} <= {tag for step in queries for tag in step.tags}


def test_no_bound_of_ordered_rows_is_null(queries: list[Step]) -> None:
    """After a scan without a bound, one with a bound is a fault of PostgreSQL's incremental sort."""
    ordered = [step.sql for step in queries if {"sorted", "appended", "windowed"} & set(step.tags)]
    assert not any("LIMIT o.x" in sql for sql in ordered)


def test_a_failing_case_shrinks() -> None:
    assert_shrinks(RescannedQueries(), scene=11, characters=320, construct="EXCEPT ALL")
