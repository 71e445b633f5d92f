"""Tests of the generator `partitioned_joins` without servers: its constructs, and its sizes within the scale."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from fuzz.generators.generator import Scale
from fuzz.generators.partitioned_joins import PartitionedJoins
from oracles.model.case import Case, Step
from tests.generators.drawing import cases_of, select_of
from tests.generators.shrinking import assert_shrinks

SMALL = Scale(rows=30, relations=3, partitions=4, queries=5)


def drawn(count: int, scale: Scale | None = None) -> list[Case]:
    return cases_of(PartitionedJoins, count, scale)


@pytest.fixture(scope="module")
def scenes() -> str:
    return "\n".join(step.sql for case in drawn(150) for step in case.scene)


@pytest.fixture(scope="module")
def queries() -> list[Step]:
    return [step for case in drawn(60) for step in case.steps]


@pytest.mark.parametrize(
    "pattern",
    [
        r"PARTITION BY RANGE \(\w+\)",
        r"PARTITION BY LIST \(\w+\)",
        r"PARTITION BY HASH \(\w+\)",
        r"PARTITION BY RANGE \(\w+, \w+\)",
        r"PARTITION BY HASH \(\w+, \w+\)",
        r"PARTITION BY \w+ \(\(\(i\d % \d+\)\)\)",
        r"PARTITION BY \w+ \(\(lower\(t\d\)\)\)",
        r"PARTITION OF r\d (DEFAULT|FOR VALUES .*) PARTITION BY",  # several levels
        r"PARTITION OF r\d_\d (DEFAULT|FOR VALUES)",
        r"PARTITION OF r\d DEFAULT",
        r"FOR VALUES IN \(([^()]*, )?NULL",
        r"ATTACH PARTITION",
        r"ALTER TABLE r\d_\d DROP COLUMN",  # partitions with another column layout
        r"ALTER TABLE r\d DROP COLUMN",
        r"PRIMARY KEY \(\w+",
        r"generate_series\(1, 0\)",  # empty
        r"CASE WHEN g % \d+ = 0 THEN g % \d+ ELSE \d+ END",  # skew
        r"CASE WHEN g % \d+ <> \d+ THEN .* END",  # NULLs
        r"CREATE INDEX ON r\d_\d",  # on one partition only
        r"ANALYZE r\d_\d",
        r"UPDATE r\d",
        r"DELETE FROM r\d",
    ],
)
def test_scenes_have(scenes: str, pattern: str) -> None:
    assert re.search(pattern, scenes)


@pytest.mark.parametrize(
    "pattern",
    [
        *("LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "LATERAL", "NATURAL", r"USING \(\w+, \w+\)"),
        *(r"\bEXISTS \(", r"NOT EXISTS \(", r"\w IN \(SELECT", r"NOT IN \(SELECT", r"= ANY \(SELECT"),
        *("IS NOT DISTINCT FROM", r"= \(SELECT (max|min)\(", r"= ANY \(ARRAY\(SELECT", r"\) (NOT )?IN \(SELECT"),
        *(r"c AS MATERIALIZED", r"c AS NOT MATERIALIZED", "UNION ALL", "INTERSECT", "EXCEPT"),
        *("GROUP BY", "HAVING", "ROLLUP", "CUBE", "GROUPING SETS", "DISTINCT", r"OVER \(PARTITION BY", "LIMIT"),
        *(r"\$1::", "tableoid", r"JOIN \(\w+ AS \w+ (LEFT |FULL |RIGHT )?JOIN"),
    ],
)
def test_queries_have(queries: list[Step], pattern: str) -> None:
    assert any(re.search(pattern, step.sql) for step in queries)


def test_rows_are_limited_only_under_a_total_order(queries: list[Step]) -> None:
    for step in queries:
        top = select_of(step.sql)
        assert step.ordered == ("sortClause" in top), step.sql
        assert "limitCount" not in top or step.ordered, step.sql


def test_nothing_is_volatile(scenes: str, queries: list[Step]) -> None:
    text = scenes + "\n".join(step.sql for step in queries)
    assert not re.search(r"\b(random|now|clock_timestamp|nextval|ctid|xmin|pg_\w+|current_\w+|float\d)\b", text)


def _from_lists(tree: Any) -> Iterator[int]:
    """Yield the number of items of each FROM list."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        if key == "fromClause":
            yield sum(map(_items, value))
        yield from _from_lists(value)


def _items(item: Any) -> int:
    ((kind, fields),) = item.items()
    if kind == "JoinExpr":
        return _items(fields["larg"]) + _items(fields["rarg"])
    assert kind in ("RangeVar", "RangeSubselect", "RangeFunction")
    return 1


@pytest.mark.parametrize("scale", [SMALL, Scale(), Scale(relations=8, partitions=40)], ids=["small", "default", "more"])
def test_sizes_stay_within_the_scale(scale: Scale) -> None:
    largest = 0
    for case in drawn(40, scale):
        assert 1 <= len(case.steps) <= scale.queries
        for table in range(1, 6):
            leaves = [name for name in _leaves(case) if name.startswith(f"r{table}_")]
            assert len(leaves) <= scale.partitions + 1  # a shared scheme may have a default in addition
        for step in case.scene:
            for last in re.findall(r"generate_series\(\d+, (\d+)\)", step.sql):
                assert int(last) <= scale.rows * 10
        for step in case.steps:
            largest = max(largest, *_from_lists(select_of(step.sql)))
    assert largest == scale.relations


def _leaves(case: Case) -> Iterator[str]:
    made = re.compile(r"CREATE TABLE (r\d(?:_\d+)+)\b(?!.* PARTITION BY )")
    return (found[1] for step in case.scene if (found := made.match(step.sql)))


def test_a_failing_case_shrinks() -> None:
    assert_shrinks(PartitionedJoins(), scene=12, characters=150)
