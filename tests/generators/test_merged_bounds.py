"""Tests of the generator `merged_bounds` without servers: its constructs, and bounds that can be created."""

import random
import re
from itertools import pairwise, permutations, product

import pytest

from fuzz.generators.choices import between
from fuzz.generators.generator import Scale
from fuzz.generators.merged_bounds.bounds import Bounds, Point, Rest, Span, Values
from fuzz.generators.merged_bounds.generator import MergedBounds
from fuzz.generators.merged_bounds.layout import draw_bounds, draw_layout
from fuzz.generators.merged_bounds.scene import Table, draw_scene
from oracles.model.case import Case, Step
from tests.generators.drawing import cases_of
from tests.generators.shrinking import assert_shrinks


def drawn(count: int, scale: Scale | None = None) -> list[Case]:
    return cases_of(MergedBounds, count, scale)


@pytest.fixture(scope="module")
def scenes() -> str:
    return "\n".join(step.sql for case in drawn(150, Scale(queries=1)) for step in case.scene)


@pytest.fixture(scope="module")
def steps() -> list[Step]:
    return [step for case in drawn(80) for step in case.steps]


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"PARTITION BY RANGE \(k1\)", r"PARTITION BY RANGE \(k1, k2\)", r"PARTITION BY RANGE \(k1, k2, k3\)"),
        *(r"PARTITION BY LIST \(k1\)", r"PARTITION BY HASH \(k1\)", r"\(\(abs\(k1\)\)\)", r"\(\(lower\(k1\)\)\)"),
        *(r"\(\(k1 - DATE '2024-01-01'\)\)", r"PARTITION OF r\d_\d ", r"PARTITION OF r\d_\d DEFAULT"),
        *(r"PARTITION OF r\d DEFAULT", r"IN \((.*, )?NULL", r"IN \(NULL\)", "MINVALUE", "MAXVALUE", "ATTACH PARTITION"),
        r"FROM \([^M,]+, MINVALUE\)",
    ],
)
def test_scenes_have(scenes: str, pattern: str) -> None:
    assert re.search(pattern, scenes)


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "LEFT JOIN",
            "RIGHT JOIN",
            "FULL JOIN",
            "LATERAL",
            "TABLESAMPLE",
            r"USING \(k1",
            r"COALESCE\(a\d\.k1, a\d\.k1",
        ),
        *("EXISTS", "NOT EXISTS", r"IN \(SELECT", "UNION ALL", "GROUP BY", "ROLLUP", "GROUPING SETS", "HAVING"),
        *("DISTINCT", r"\$1::", "tableoid::regclass", r"a\d::text", r"\ba5\b", r"FROM r\d AS a1, ", "WHERE false"),
        r"NOT EXISTS \(SELECT FROM r\d AS b\d WHERE b\d\.k1 = b\d\.k1 AND b\d\.k2 = b\d\.k2 AND b\d\.k2 (<|>|=)",
        *(r"UPDATE r1 .* FROM ", r"UPDATE r1 .* EXISTS", "DELETE FROM r1 AS t USING", "MERGE INTO r1"),
    ],
)
def test_steps_have(steps: list[Step], pattern: str) -> None:
    assert any(re.search(pattern, step.sql) for step in steps)


def _bounds(seed: int) -> Bounds:
    rng = random.Random(seed)
    return draw_bounds(rng, draw_layout(rng, between(rng, 1, 3), 4, 12), 0)


@pytest.mark.parametrize("seed", range(400))
def test_partitions_do_not_overlap(seed: int) -> None:
    parts = [part.bound for part in _bounds(seed).parts]
    spans = sorted((bound for bound in parts if isinstance(bound, Span)), key=lambda span: span.low)
    assert all(span.low < span.high for span in spans)
    assert all(first.high <= second.low for first, second in pairwise(spans))
    values = [value for bound in parts if isinstance(bound, Values) for value in bound.values]
    assert len(values) == len(set(values))
    assert all(bound.values for bound in parts if isinstance(bound, Values))
    assert [isinstance(bound, Rest) for bound in parts].count(True) <= 1


def test_disjoint_ranges_may_overlap_one_range_of_a_third_table() -> None:
    found = 0
    for seed in range(100):
        rng = random.Random(seed)
        layout = draw_layout(rng, 1, 3, 12)
        drawn = [draw_bounds(rng, layout, table) for table in range(3)]
        first, second, third = (
            [part.bound for part in bounds.parts if isinstance(part.bound, Span)] for bounds in drawn
        )
        triples = product(first, second, third)
        found += any(_overlap(a, c) and _overlap(b, c) and not _overlap(a, b) for a, b, c in triples)
    assert found >= 5


def test_ranges_of_a_third_table_lie_between_the_upper_bounds_of_two_others_with_rows_on_both_sides() -> None:
    scenes = [draw_scene(random.Random(n), Scale()) for n in range(200)]
    ranged = [scene.tables for scene in scenes if any(_spans(table) for table in scene.tables)]
    found = sum(any(_matches_between(*tables) for tables in permutations(each, 3)) for each in ranged)
    assert found > len(ranged) / 3


_CHAIN = re.compile(r"FROM (r\d) AS a1 (\w*) ?JOIN (r\d) AS a2 USING \([^)]*\) (\w*) ?JOIN (r\d) AS a3 USING")


def test_full_joins_of_such_tables_are_joined_with_the_third_one() -> None:
    found = 0
    for n in range(200):
        tables = {table.name: table for table in draw_scene(random.Random(n), Scale()).tables}
        for step in MergedBounds().generate(random.Random(n), Scale()).steps:
            if (chain := _CHAIN.search(step.sql)) and chain[2] == "FULL" and chain[4] == "":
                first, second, third = (tables[chain[group]] for group in (1, 3, 5))
                found += _matches_between(first, second, third) or _matches_between(second, first, third)
    assert found >= 20


def test_three_tables_are_joined_in_each_order() -> None:
    for case in drawn(40):
        chains = [chain for step in case.steps if (chain := _CHAIN.search(step.sql))]
        if {(chain[1], chain[3], chain[5]) for chain in chains} >= set(permutations(("r1", "r2", "r3"))):
            return
    pytest.fail("no case has all orders")


def _spans(table: Table) -> list[Span]:
    return [part.bound for part in table.bounds.parts if isinstance(part.bound, Span)] if table.bounds else []


def _matches_between(wider: Table, narrower: Table, third: Table) -> bool:
    """Return whether a range of the third table is between the bounds, and has rows with partners in the wider one."""
    triples = product(_spans(wider), _spans(narrower), _spans(third))
    return any(
        _overlap(a, b) and b.high <= c.low < a.high and _points(wider, a) & _points(third, c) for a, b, c in triples
    )


def _points(table: Table, span: Span) -> set[Point]:
    assert table.bounds
    columns = table.bounds.columns
    return {point for point in table.points if table.rows and span.holds(tuple(point[n] for n in columns))}


def _overlap(one: Span, other: Span) -> bool:
    return one.low < other.high and other.low < one.high


def test_rows_fit_a_partition_and_points_are_near_the_bounds() -> None:
    filled = 0
    for n in range(100):
        scene = draw_scene(random.Random(n), Scale())
        for table in scene.tables:
            assert table.rows <= 600
            assert all(table.bounds is None or table.bounds.fits(point) for point in table.points)
            filled += table.rows > 20
    assert filled > 150


def test_known_faults_of_postgresql_are_avoided() -> None:
    """See `Allowed`: no join over a full join where lists may be merged again."""
    remapping = 0
    for n in range(60):
        if draw_scene(random.Random(n), Scale()).remaps:
            remapping += 1
            for step in MergedBounds().generate(random.Random(n), Scale()).steps:
                assert "FULL JOIN" not in step.sql or ("EXISTS" not in step.sql and "AS a3" not in step.sql)
    assert remapping


def test_a_failing_case_shrinks() -> None:
    assert_shrinks(MergedBounds(), scene=14, characters=160)
