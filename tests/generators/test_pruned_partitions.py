"""Tests of the generator `pruned_partitions` without servers: bounds, keys, conditions and changes."""

import random
import re
from math import isfinite

import pytest
from hypothesis import given, settings

from fuzz.engines.property_based import cases
from fuzz.generators.generator import Scale
from fuzz.generators.pruned_partitions.generator import PrunedPartitions
from fuzz.generators.pruned_partitions.keys import KINDS
from fuzz.generators.pruned_partitions.scene import draw_scene
from oracles.model.case import Case
from tests.generators.drawing import cases_of


def drawn(count: int, scale: Scale | None = None) -> list[Case]:
    return cases_of(PrunedPartitions, count, scale)


@pytest.fixture(scope="module")
def scenes() -> str:
    return "\n".join(step.sql for case in drawn(300) for step in case.scene)


@pytest.fixture(scope="module")
def statements() -> str:
    return "\n".join(step.sql for case in drawn(200) for step in case.steps)


@pytest.mark.parametrize(
    "pattern",
    [
        r"PARTITION BY RANGE \(k\d, k\d, k\d, k\d\)",
        r"PARTITION BY HASH \(k\d, k\d\)",
        r"PARTITION BY \w+ \(.*\(k\d IS NULL\)",
        r"PARTITION BY \w+ \(k\d (own_ops|text_pattern_ops)\)",
        r'PARTITION BY \w+ \(k\d COLLATE "POSIX"\)',
        r"FROM \(MINVALUE, MINVALUE\) TO",
        r"FROM \([^M]+, MINVALUE\) TO \([^M]+, MAXVALUE\)",
        r"TO \([^M]+, MAXVALUE, MAXVALUE\)",
        r"FOR VALUES IN \(NULL\)",
        r"FOR VALUES IN \([^)]+, NULL\)",
        r"PARTITION OF p DEFAULT PARTITION BY",
        r"PARTITION OF p_\d+_\d+_\d+ ",
        r"MODULUS (6|10|12|20), REMAINDER",
        r"satisfies_hash_partition\('p'",
        r"DROP COLUMN gone",
        r"ATTACH PARTITION",
        r"CREATE INDEX ON p_\d",
        r"DETERMINISTIC = false",
        "CREATE DOMAIN whole",
        "CREATE TYPE shade AS ENUM",
    ],
)
def test_scenes_have(scenes: str, pattern: str) -> None:
    assert re.search(pattern, scenes)


def test_each_kind_of_key_partitions_a_table(scenes: str) -> None:
    for kind in KINDS.options:
        assert re.search(rf"CREATE TABLE p \(.*\bk\d {re.escape(kind.type.declaration)}[,)]", scenes), kind.type


@pytest.mark.parametrize(
    "pattern",
    [
        *("IS NOT TRUE", "IS UNKNOWN", r"NOT IN \(", "NOT BETWEEN", "<> ALL", "= ANY", "IS NOT DISTINCT FROM", "LIKE"),
        *(r"\(a\.k\d, a\.k\d\) <=? \(", r"steady\(", r"= \(SELECT i\.k\d FROM d", r"\$1::\w+", r"\$1::\w+\[\]"),
        *("LATERAL", "UNION ALL", "NOT EXISTS", "FULL JOIN", "FOR UPDATE", "AND false", r"a\.k\d = o\.k\d"),
        *("RETURNING merge_action", r"NOT MATCHED BY SOURCE .*THEN UPDATE", "NOT MATCHED BY TARGET THEN INSERT"),
        *("REFERENCING OLD TABLE AS old_rows NEW", r"SET \(k1, .*\) = \(SELECT k1", r"SET \(k1, .*\) = ROW\(s.k1"),
        *(r"(greatest|least|coalesce)\([oi]\.", r"\(SELECT sum\(s\.n\) FROM", r"ORDER BY b\.k\d.*, b\.id LIMIT"),
        *(r"last_value\(k1\) OVER w", r"^MERGE INTO [pq]_\d+", r"^UPDATE p .* FROM \(SELECT .*last_value"),
        *(r"b\.k\d = o\.k\d AND .*b\.k\d = i\.k\d", "SET enable_sort = off", r"IN \(.*\) ORDER BY k\d, id"),
        *("RETURNING", "MERGE INTO", "SCROLL CURSOR", "FETCH BACKWARD", "FETCH ABSOLUTE -", "EXECUTE kept"),
        *(r"DETACH PARTITION p_\d+ CONCURRENTLY", r"p_\d+_half2", r"_default PARTITION OF", r"ORDER BY k\d DESC, "),
        *("SET inhdetachpending = true", "FINALIZE", r"VARIADIC ARRAY\[k\d", r"GRANT SELECT \(k\d", r"repeat\('z'"),
        *("ADD CONSTRAINT implied", r"FROM \(MINVALUE.*\) TO \("),
    ],
)  # fmt: skip
def test_statements_have(statements: str, pattern: str) -> None:
    assert re.search(pattern, statements, re.MULTILINE)


def test_many_rows_combine_values_of_bounds() -> None:
    scenes = [draw_scene(random.Random(f"unit/{n}"), Scale()) for n in range(100)]
    bounds = [
        (key.column.name, int(edge[0]), scene.common)
        for scene in scenes
        for key, edges in [(scene.trees[0].level.keys[0], scene.trees[0].level.edges)]
        for edge in edges
        if key.form == "{}" and isfinite(edge[0])
    ]
    assert sum(value in common[name] for name, value, common in bounds) > len(bounds) / 3


def test_ranges_are_not_empty(scenes: str) -> None:
    ranges = re.findall(r"FOR VALUES FROM \((.*?)\) TO \((.*?)\)", scenes)
    assert len(ranges) > 500
    assert not [low for low, high in ranges if low == high]


def test_infinite_bounds_end_a_row() -> None:
    for case in drawn(150):
        for step in case.scene:
            for row in re.findall(r"(?:FROM|TO) \(([^()]*(?:MIN|MAX)VALUE[^()]*)\)", step.sql):
                values = row.split(", ")
                infinite = values[next(n for n, value in enumerate(values) if value in ("MINVALUE", "MAXVALUE")) :]
                assert len(set(infinite)) == 1, row


def test_detached_partitions_are_attached_again() -> None:
    for case in drawn(150):
        sql = [step.sql for step in case.steps]
        detached = [found[1] for each in sql if (found := re.search(r"DETACH PARTITION (\w+)", each))]
        attached = [found[1] for each in sql if (found := re.search(r"ATTACH PARTITION (\w+) ", each))]
        assert sorted(detached) == sorted(name for name in attached if "DETACH" not in name and name in detached)


@settings(max_examples=20, derandomize=True)
@given(cases(PrunedPartitions()))
def test_it_works_as_a_property(case: Case) -> None:
    assert case.steps
    assert all(step.sql for step in case.all_steps)
