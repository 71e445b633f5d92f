"""Tests of the generator `hash_growth` without servers: its sizes, and wrong estimates of them."""

import random
import re
from collections import Counter

import pytest

from fuzz.generators.generator import Scale
from fuzz.generators.hash_growth.generator import HashGrowth, draw_growth, draw_size, snug
from oracles.model.case import Case, Kind, Step
from tests.generators.drawing import cases_of
from tests.generators.shrinking import assert_shrinks

ROWS = 20_000
MISESTIMATES = (
    "counted",
    "implied",
    "correlated",
    "beyond",
    "few",
    "series",
    "groups",
    "excluded",
    "many",
    "claimed",
    "multiplied",
    "parameter",
)


def drawn(count: int, scale: Scale | None = None) -> list[Case]:
    return cases_of(HashGrowth, count, scale)


@pytest.fixture(scope="module")
def scenes() -> str:
    return "\n".join(step.sql for case in drawn(150) for step in case.scene)


@pytest.fixture(scope="module")
def steps() -> list[Step]:
    return [step for case in drawn(300) for step in case.steps]


def test_sizes_include_those_at_which_tables_grow_and_their_neighbours() -> None:
    rng = random.Random(1)
    sizes = {draw_size(rng, ROWS) for _ in range(4000)}
    for edge in (2, 512, 1024, 2048, 4096, 8192, 16384, 10240, 2560):
        assert {edge - 1, edge, edge + 1} <= sizes
    assert all(0 <= size <= ROWS for size in sizes)


def test_most_sizes_exceed_the_minimal_number_of_buckets() -> None:
    rng = random.Random(2)
    assert sum(draw_size(rng, ROWS) > 1000 for _ in range(1000)) > 700


@pytest.mark.parametrize("most", [0, 1, 2, 3, 1023])
def test_sizes_are_within_any_limit(most: int) -> None:
    rng = random.Random(3)
    assert all(0 <= draw_size(rng, most) <= most for _ in range(200))


def test_snug_memory_holds_rows_and_buckets_and_little_more() -> None:
    rng = random.Random(4)
    for _ in range(200):
        memory = snug(rng, 4096)
        assert 4096 * (40 + 8) / 1024 - 3 <= memory.kilobytes <= 4096 * (120 + 16) / 1024 + 2
        assert memory.multiplier == 1


@pytest.mark.parametrize(
    "pattern",
    [
        *("SET work_mem = '64kB'", "SET work_mem = '4MB'", r"SET work_mem = '\d+[1-9]kB'"),
        *("SET hash_mem_multiplier = 1", "SET hash_mem_multiplier = 2", "SET hash_mem_multiplier = 3"),
        r"INSERT INTO r1 .*\nANALYZE r1\nINSERT INTO r1 ",  # statistics of some rows
        r"ANALYZE r1\nDELETE FROM r1 WHERE i1 > \d+",  # statistics of deleted rows
        r"\(1, (1023|1024|1025)\) AS g",
        *("NULL::int4", "g % 100 >= 1 THEN", "g % 100 >= 50 THEN"),
        *(
            r"r1 .*g / \d+ % 9973",
            r"r1 .*SELECT \(\d+\)::int4 AS k1",
            r"r1 .*CASE WHEN g % \d+ = 0 THEN .* ELSE \d+ END",
        ),
        *(r"FUNCTION grown\d\(\) .* ROWS [12] ", r"FUNCTION grown\d\(\) .* ROWS (199999|20000[01]) "),
        *(r"FUNCTION grown\d\(\) .* ROWS 10000[01] ", r"FUNCTION grown\d\(\) .* ROWS (9999999999|1000000000[01]) "),
        "repeat\\(md5\\(g::text\\), 90\\)",  # wide rows
    ],
)
def test_scenes_have(scenes: str, pattern: str) -> None:
    assert re.search(pattern, scenes)


def test_each_cause_of_wrong_estimates_occurs(steps: list[Step]) -> None:
    tags = Counter(tag for step in steps for tag in step.tags)
    assert [name for name in MISESTIMATES if not tags[f"way.{name}"]] == []
    assert min(tags[f"expected.{what}"] for what in ("fewer", "more", "right")) > len(steps) / 20


def test_immense_estimates_are_joined_with_each_other(steps: list[Step]) -> None:
    """The planner hashes the smaller side, so both must be immense."""
    immense = re.compile(r"grown\d\(\) AS|AS s1\b")
    both = [step for step in steps if len(immense.findall(step.sql)) > 1 and "expected.more" in step.tags]
    assert len(both) > len(steps) / 100


@pytest.mark.parametrize(
    "pattern", [r" LIMIT \d+\) AS q$", "GROUP BY k1, k2, i1, i2, i3", "LATERAL", "CURSOR", r"\$1::int4"]
)
def test_steps_have(steps: list[Step], pattern: str) -> None:
    assert any(re.search(pattern, step.sql) for step in steps)


def test_queries_with_a_parameter_have_its_value(steps: list[Step]) -> None:
    for step in steps:
        if "way.parameter" in step.tags:
            assert step.kind is Kind.QUERY
            assert len(step.params) == 1
            assert int(step.params[0] or "") >= 0


def test_the_first_rows_of_some_sources_have_one_key(scenes: str, steps: list[Step]) -> None:
    """They must not fill the memory alone."""
    counts = re.findall(r"repeat\(md5\(g::text\), (\d)\) FROM generate_series\(1, (\d+)\) AS g; RETURN QUERY", scenes)
    assert counts
    assert all(int(rows) * (40 + 32 * int(times)) < 54_000 for times, rows in counts)
    assert sum("way.first_key" in step.tags for step in steps) > len(steps) / 200


def test_results_of_joins_are_stored_as_a_whole(scenes: str, steps: list[Step]) -> None:
    """Otherwise arms would store other rows, as these arrive batch by batch."""
    stored = re.findall(r"CREATE TABLE stored AS .* AS a ([A-Z ]+) s1 AS b ON a.k1 = b.k1(.*)", scenes)
    assert {join for join, _ in stored} == {"JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"}
    assert {limit for _, limit in stored} == {"", " LIMIT 1000000"}
    assert sum("way.stored_join" in step.tags for step in steps) > len(steps) / 200


@pytest.mark.parametrize("filter_", ["shared", "late"])
def test_some_filters_are_planned_for_far_more_rows(steps: list[Step], filter_: str) -> None:
    assert sum(f"way.{filter_}_filter" in step.tags for step in steps) > len(steps) / 200


def test_some_tables_are_large(steps: list[Step]) -> None:
    large = [
        int(step.sql.split("generate_series(1, (SELECT ")[2].split(")")[0])
        for step in steps
        if "way.large" in step.tags
    ]
    assert len(large) > len(steps) / 1000
    assert all(700_000 < rows < 2_200_000 for rows in large)


def test_queries_of_contended_scenes_run_several_times(steps: list[Step]) -> None:
    growths = [draw_growth(random.Random(n), Scale()) for n in range(200)]
    assert 10 < sum(growth.contended for growth in growths) < 60
    assert any(first == second == third for first, second, third in zip(steps, steps[1:], steps[2:], strict=False))


@pytest.mark.parametrize(
    "scale", [Scale(rows=30, relations=2, partitions=4, queries=5), Scale()], ids=["small", "large"]
)
def test_tables_stay_within_the_scale(scale: Scale) -> None:
    for case in drawn(60, scale):
        for step in case.scene:
            for last in re.findall(r"generate_series\(\d+, (\d+)\)", step.sql):
                assert int(last) <= max(scale.rows * 56 * 5 / 4, 6000)  # a late filter needs 4,096 rows at any scale
            for kilobytes in re.findall(r"work_mem = '(\d+)kB'", step.sql):
                assert int(kilobytes) <= max(scale.rows * 200, 8192)


def test_a_failing_case_shrinks() -> None:
    assert_shrinks(HashGrowth(), scene=16, characters=300)
