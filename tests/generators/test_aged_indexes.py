"""Tests of the generator `aged_indexes` without servers: its constructs, orders, and shrinking."""

import random
import re

import pytest

from fuzz.generators.aged_indexes.generator import AgedIndexes
from fuzz.generators.generator import Scale
from oracles.model.case import Case, Kind
from tests.generators.drawing import select_of
from tests.generators.shrinking import assert_shrinks


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [AgedIndexes().generate(random.Random(f"unit/{n}"), Scale()) for n in range(60)]


@pytest.mark.parametrize("method", ["btree", "brin", "gin", "gist", "spgist", "hash"])
def test_each_method_has_an_index(cases: list[Case], method: str) -> None:
    assert sum(f"USING {method} (" in step.sql for case in cases for step in case.scene) >= 5


@pytest.mark.parametrize(
    "text",
    [
        *("DELETE FROM t", "UPDATE t SET p", "ON CONFLICT", "ROLLBACK TO s", "FETCH BACKWARD", "VACUUM t"),
        *("VACUUM (FULL)", "INDEX_CLEANUP off", "REINDEX", "CLUSTER", "brin_desummarize_range", "gin_clean_pending"),
        *("(k, id) >", "^@", "-|-", "LATERAL", "GROUP BY", " OR "),
    ],
)
def test_steps_have(cases: list[Case], text: str) -> None:
    assert any(text in step.sql for case in cases for step in case.all_steps)


def test_rows_are_limited_only_under_a_total_order(cases: list[Case]) -> None:
    for step in (step for case in cases for step in case.steps if step.kind is Kind.QUERY):
        top = select_of(step.sql)
        assert step.ordered == ("sortClause" in top) == ("limitCount" in top), step.sql


def test_a_query_has_no_array_beside_a_row_comparison(cases: list[Case]) -> None:
    """A fault of PostgreSQL, corpus/upstream/30bd832d13bb.sql."""
    compared = [step.sql for case in cases for step in case.steps if "(k, id) >" in step.sql]
    assert compared
    assert not any(re.search(r"\b(k|id) (IN \(\d|= ANY)", sql) for sql in compared)


@pytest.mark.parametrize(
    "column", [*("id int2", "id int8", "k int2", "k int8", "t name", "d timestamp,", "d timestamptz"), "f float4"]
)
def test_some_tables_have(cases: list[Case], column: str) -> None:
    assert any(f"{column}" in step.sql for case in cases for step in case.scene)


@pytest.mark.parametrize("column", ["id", "k", "t", "d", "f"])
def test_an_array_stands_beside_an_operand_of_another_type(cases: list[Case], column: str) -> None:
    texts = [step.sql for case in cases for step in case.steps]
    array, scalar = rf"\b{column} = ANY \('{{[^}}]*}}'::(\w+)\[\]\)", rf"\b{column} [<=>]+ '[^']*'::(\w+)"
    types = [(re.findall(array, sql), re.findall(scalar, sql)) for sql in texts]
    assert any(set(of_scalars) - set(of_arrays) for of_arrays, of_scalars in types if of_arrays)


def test_a_failing_case_shrinks() -> None:
    assert_shrinks(AgedIndexes(), scene=5, characters=220, construct="LATERAL")
