"""Tests of the generator `outer_joins` without servers: its constructs, and all pairs of values of its axes."""

import re
from itertools import combinations, product

import pytest

from fuzz.engines.seeded import case_of
from fuzz.generators.generator import Scale
from fuzz.generators.outer_joins.axes import KEYS, MEMORIES, NULLS, SKEWS
from fuzz.generators.outer_joins.generator import OuterJoins
from fuzz.generators.outer_joins.levels import KINDS
from fuzz.generators.outer_joins.shapes import RESCANS
from oracles.model.case import Case, CaseId, Kind, Step
from tests.generators.drawing import cases_of, select_of
from tests.generators.shrinking import assert_shrinks

# Number of cases, less than ten minutes, in which all pairs occur for all but one of about 100,000 seeds.
CROSSED = 2000
AXES = {
    "key": [key.name for key in KEYS.options],
    "nulls": [str(percent) for percent in NULLS.options],
    "skew": list(SKEWS.options),
    "memory": sorted({memory.name for memory in MEMORIES.options}),
    "join": list(KINDS.options),
    "rescan": list(RESCANS.options),
    "parallel": ["no", "yes"],
    "partitionwise": ["no", "yes"],
}
PAUSE = r"THEN pg_sleep\(0\.0\d+\)::text ELSE '' END IS NOT NULL"  # true for all rows
COUNTED = r"SELECT count\((true|length\(w\) >= 0 OR w IS NULL)\) FROM \("


def drawn(count: int, scale: Scale | None = None) -> list[Case]:
    return cases_of(OuterJoins, count, scale)


@pytest.fixture(scope="module")
def scenes() -> str:
    return "\n".join(step.sql for case in drawn(150) for step in case.scene)


@pytest.fixture(scope="module")
def steps() -> list[Step]:
    return [step for case in drawn(300) for step in case.steps]


@pytest.mark.parametrize(
    "pattern",
    [
        *(rf"k1 {kind}\b" for kind in ("int2", "int4", "int8", "numeric", "uuid", "date", "pair", "varchar")),
        *('k1 text COLLATE "C"', 'k1 text COLLATE "und-x-icu"', "k1 text COLLATE folding", "deterministic = false"),
        r"r1 \(.*k1 int4.*\n(.*\n)*?.*r2 \(.*k1 int8",  # keys of different types
        *("NULL::int4", "g % 100 >= 1 THEN", "g % 100 >= 50 THEN"),  # NULLs
        r"r1 \(.*CASE WHEN g % \d+ = 0 THEN .* ELSE \d+ END",  # a hot key of the probing side
        r"r2 \(.*CASE WHEN g % \d+ = 0 THEN .* ELSE \d+ END",  # keys that no number of batches splits
        r"ELSE repeat\(md5\(g::text\)",  # some toasted rows
        r"generate_series\(1, [0-2]\)",
        *("SET work_mem = '64kB'", "SET work_mem = '4MB'", "SET hash_mem_multiplier = 2"),
        *("SET enable_parallel_hash = off", "SET enable_material = off"),
        *(r"PARTITION BY (HASH|LIST|RANGE) \(\(*k1\b", r"PARTITION BY \w+ \(\(*k2\b"),
        r"ANALYZE r1\n(.*\n)*?.*INSERT INTO r1",  # stale statistics
        r"CREATE FUNCTION few\(\) RETURNS SETOF r2 .* ROWS \d+ ",
    ],
)
def test_scenes_have(scenes: str, pattern: str) -> None:
    assert re.search(pattern, scenes)


@pytest.mark.parametrize(
    "pattern",
    [
        *("LEFT JOIN", "RIGHT JOIN", "FULL JOIN", r"\) AS \w\d JOIN", "LATERAL", r"JOIN \(\w+ AS \w+ (\w+ )?JOIN"),
        *(r"AND EXISTS \(|WHERE EXISTS \(", r"NOT EXISTS \(", r"\w IN \(SELECT", r"= ANY \(SELECT", r"NOT IN \(SELECT"),
        *(r"WHERE .*\.k1 IS NULL", r"ON \w+\.k1 = \w+\.k1 AND \w+\.k2 = \w+\.k2", r"\.k1 <> |\.i2 <> "),
        *(
            r"lower\(\w+\.k1\) = lower\(",
            r"\.k1 \* 2 = ",
            r"k1::numeric = ",
            r"\(\w+\.k1\)\.a \* 10",
            "k1::timestamp = ",
        ),
        *("WITH RECURSIVE c", "c AS MATERIALIZED", r"SELECT count\(.* LIMIT \d+\) AS q$", r"^SELECT EXISTS"),
        *(r"few\(\) AS", r"\* 2 % 2 = 0 OFFSET 0", r"repeat\(md5\(\w+\.i1::text\), \d+\) AS w2"),
        *("NO SCROLL CURSOR", "[^O] SCROLL CURSOR", "WITH HOLD", "FETCH BACKWARD", "MOVE BACKWARD", "ROLLBACK TO s"),
        *(r"100 / \(", "division_by_zero", "pg_cancel_backend", "statement_timeout = '", "GROUP BY", r"OVER \("),
    ],
)
def test_steps_have(steps: list[Step], pattern: str) -> None:
    assert any(re.search(pattern, step.sql) for step in steps)


def test_rows_are_limited_only_under_a_total_order(steps: list[Step]) -> None:
    """LIMIT without an order is allowed if the query only counts the rows."""
    for step in steps:
        if step.kind is Kind.QUERY:
            top = select_of(step.sql)
            assert step.ordered == ("sortClause" in top), step.sql
            assert "limitCount" not in top or step.ordered, step.sql
            for limited in re.findall(r"([^()]*) LIMIT \d+(?: OFFSET \d+)?\) AS", step.sql):
                assert "ORDER BY" in limited or re.search(COUNTED, step.sql), step.sql


def test_volatile_functions_only_pause_or_cancel_statements(scenes: str, steps: list[Step]) -> None:
    text = scenes + "\n".join(re.sub(r"pg_(sleep|cancel_backend|backend_pid)\(", "", step.sql) for step in steps)
    assert not re.search(r"\b(random|now|clock_timestamp|nextval|ctid|xmin|pg_\w+|current_\w+|float\d)\b", text)
    for step in steps:
        ending = re.sub(PAUSE, "", step.sql)
        assert step.sql.startswith("DO ") or not re.search(r"\bpg_\w+\(", ending), step.sql


def test_queries_that_may_fail_return_no_rows_before_the_error(steps: list[Step]) -> None:
    failing = [step for step in steps if step.may_fail]
    assert failing
    for step in failing:
        assert re.match(r"SELECT count\(", step.sql), step.sql
        assert "error.uncaught" in step.tags


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_all_pairs_of_values_occur_early(seed: int) -> None:
    missing = _pairs_of_axes()
    for index in range(CROSSED):
        case = case_of(CaseId(seed, "outer_joins", index), Scale())
        missing.difference_update(pair for step in case.steps for pair in combinations(_values(case, step), 2))
        if not missing:
            break
    assert not missing


def _pairs_of_axes() -> set[tuple[tuple[str, str], tuple[str, str]]]:
    values = [[(axis, value) for value in AXES[axis]] for axis in AXES]
    pairs = {pair for one, other in combinations(values, 2) for pair in product(one, other)}
    # SQL has no recursion through the nullable side of a join, or through NOT IN.
    return pairs - {(("join", kind), ("rescan", "recursive")) for kind in ("full", "not_in")}


def _values(case: Case, step: Step) -> list[tuple[str, str]]:
    """Return the step's axes with their values, in the order of AXES."""
    values = dict(tag.split(".") for tag in step.tags if "." in tag)
    modes = {mode.name for mode in case.modes}
    values["parallel"] = "yes" if "parallel" in modes else "no"
    values["partitionwise"] = "yes" if "partitionwise" in modes and "partitioned" in step.tags else "no"
    return [(axis, values[axis]) for axis in AXES if axis in values]


@pytest.mark.parametrize(
    "scale", [Scale(rows=30, relations=2, partitions=4, queries=5), Scale()], ids=["small", "default"]
)
def test_sizes_stay_within_the_scale(scale: Scale) -> None:
    for case in drawn(60, scale):
        assert len(case.steps) <= scale.queries * 3  # a cursor has a dozen steps
        for step in case.scene:
            for last in re.findall(r"generate_series\(\d+, (\d+)\)", step.sql):
                assert int(last) <= scale.rows * 40


def test_a_failing_case_shrinks() -> None:
    assert_shrinks(OuterJoins(), scene=14, characters=200)
