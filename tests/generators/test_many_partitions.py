"""Tests of the generator `many_partitions` without servers: constructs that make equivalence classes."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.engines.property_based import cases
from fuzz.generators.generator import Scale
from fuzz.generators.many_partitions.generator import ManyPartitions
from fuzz.generators.sql.sqltypes import LARGEST
from oracles.model.case import Case
from tests.generators.drawing import cases_of


def drawn(count: int, scale: Scale | None = None) -> list[Case]:
    return cases_of(ManyPartitions, count, scale)


@pytest.fixture(scope="module")
def scenes() -> str:
    return "\n".join(step.sql for case in drawn(150) for step in case.scene)


@pytest.fixture(scope="module")
def statements() -> str:
    return "\n".join(step.sql for case in drawn(60) for step in case.steps)


@pytest.mark.parametrize(
    "pattern",
    [
        *(rf"PARTITION BY {method} \(k1\)" for method in ("RANGE", "LIST", "HASH")),
        r"PARTITION OF r\d .* PARTITION BY HASH",
        r"FOR n IN 896\.\.1023 LOOP",
        r"INHERITS \(r\d\)",
        r"INHERITS \(r\d_1\)",
        r"CREATE FOREIGN TABLE r\d_\d PARTITION OF",
        r"ATTACH PARTITION",
        r"k1 int4 .*k2 int8",
        r"k1 date .*k2 timestamp|k1 timestamp .*k2 date",
        r"k1 varchar.*k2 text",
        r"VOLATILE",
        r"CREATE INDEX ON r\d \(coalesce",
        r"ADD FOREIGN KEY \(k1\) REFERENCES r3",
    ],
)
def test_scenes_have(scenes: str, pattern: str) -> None:
    assert re.search(pattern, scenes)


@pytest.mark.parametrize(
    "pattern",
    [
        *("LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN LATERAL", "UNION ALL", "NOT EXISTS", r"k1 IN \(SELECT"),
        *(r"same\(", r'COLLATE "POSIX"', r"\(a\d+\.k1 % 7\) = ", r"k1 = \$1::", r"WHERE .*a\d+\.k\d = a\d+\.k\d"),
        *("FOR (NO KEY )?UPDATE OF", "FOR (KEY )?SHARE OF", r"OVER \(PARTITION BY a\d+\.k", r"GROUP BY a\d+\.k"),
        *("ORDER BY", "DISTINCT", "EXECUTE kept", "DETACH PARTITION", "NO INHERIT", "force_generic_plan", r"\ba12\b"),
        *(r"y\.ctid = x\.ctid", r"ORDER BY 1, 2.* ORDER BY q\.s"),
        *(r"UPDATE r\d AS x SET i2", r"DELETE FROM r\d", r"MERGE INTO r\d", r"REFERENCES r\d_1\)"),
    ],
)
def test_statements_have(statements: str, pattern: str) -> None:
    assert re.search(pattern, statements)


@settings(max_examples=25, derandomize=True)
@given(st.integers(0, 10**6))
def test_few_relations_have_many_children_or_the_reverse(seed: int) -> None:
    """On master, planning time grows with the square of the members and with the number of join orders."""
    case = ManyPartitions().generate(random.Random(seed), Scale())
    made = {name: _children(case, name) for name in re.findall(r"CREATE TABLE (r\d)\b", _scene(case))}
    for step in case.steps:
        used = [made[name] for name in re.findall(r"\b(r\d) AS", step.sql)]
        if len(used) > 4:
            assert sum(used) <= 2 * 500


def _scene(case: Case) -> str:
    return "\n".join(step.sql for step in case.scene)


def _children(case: Case, name: str) -> int:
    bulk = re.findall(rf"FOR n IN (\d+)\.\.(\d+) LOOP EXECUTE format\('CREATE TABLE {name}_", _scene(case))
    singly = len(re.findall(rf"(?:PARTITION OF|INHERITS \() ?{name}\b(?! FOR VALUES %s)", _scene(case)))
    return singly + sum(int(last) - int(first) + 1 for first, last in bulk)


@pytest.mark.parametrize("rows", [12, 60])
def test_a_list_partition_has_a_value_for_few_rows_too(rows: int) -> None:
    scenes = "\n".join(map(_scene, drawn(150, Scale(rows=rows, queries=1))))
    assert "FOR VALUES IN (" in scenes
    assert "FOR VALUES IN ()" not in scenes


def test_keys_of_many_list_partitions_are_not_cut_off() -> None:
    scenes = "\n".join(map(_scene, drawn(150, Scale(rows=60, queries=1))))
    bulk = re.findall(r"FOR n IN \d+\.\.(\d+) LOOP .*'IN \(%L\)'.*?n \* (\d+)", scenes)
    assert any(int(step) > 1 for _, step in bulk)
    assert all(int(last) * int(step) <= LARGEST for last, step in bulk)


def test_detached_children_are_attached_again() -> None:
    for case in drawn(60):
        for detached in re.findall(r"DETACH PARTITION (\w+)", "\n".join(step.sql for step in case.steps)):
            assert any(re.search(rf"ATTACH PARTITION {detached} ", step.sql) for step in case.steps)


@settings(max_examples=20, derandomize=True)
@given(cases(ManyPartitions()))
def test_it_works_as_a_property(case: Case) -> None:
    assert case.steps
    assert all(step.sql for step in case.all_steps)
