"""Tests of the generator `transition_tables` without servers: its constructs, its pairs of logs, and shrinking."""

import re

import pytest

from fuzz.generators.transition_tables.generator import TransitionTables
from oracles.model.case import Case, SameRows
from tests.generators.drawing import cases_of
from tests.generators.shrinking import assert_shrinks

CASES = cases_of(TransitionTables, 60)


def texts(case: Case) -> list[str]:
    return [step.sql for step in case.all_steps]


@pytest.mark.parametrize(
    "construct",
    [
        "PARTITION BY LIST", "PARTITION BY RANGE", "PARTITION BY HASH", "INHERITS", "STORED", "DROP COLUMN gone",
        "BEFORE INSERT", "FOREIGN KEY", "INTO t_view", "DO UPDATE SET", "DO NOTHING", "COPY t ", "USING s",
        "NOT MATCHED BY SOURCE", "NOT MATCHED THEN INSERT", "WITH w AS", "SET k = (a.k", "ADD COLUMN x",
        "NO INHERIT", "WITH CHECK OPTION", "RETURNING merge_action()", "ON a.id = s.id AND a.id <",
        "VIEW t_checked",
    ],
)  # fmt: skip
def test_statements_have(construct: str) -> None:
    assert any(construct in sql for case in CASES for sql in texts(case))


def test_each_change_is_followed_by_both_logs() -> None:
    for case in CASES:
        changes = [n for n, step in enumerate(case.steps) if step.tags and step.tags[0] != "checked"]
        assert changes
        for position in changes:
            rows, statements = case.steps[position + 1 : position + 3]
            assert statements.same_rows is SameRows.BY_TRIGGERS
            assert statements.sql == rows.sql.replace("'ROW'", "'STATEMENT'") != rows.sql


def test_events_are_compared_unless_a_statement_may_move_rows() -> None:
    moving = {"move", "move_from"}
    for case in CASES:
        compares_events = any("SELECT event" in step.sql for step in case.steps)
        assert not (compares_events and any(moving.intersection(step.tags) for step in case.steps))


def test_one_step_creates_all_triggers_that_log() -> None:
    for case in CASES:
        assert sum("EXECUTE FUNCTION watch()" in sql for sql in texts(case)) == 1


def test_constructs_of_known_faults_are_avoided() -> None:
    for case in CASES:
        partitioned = any("PARTITION BY" in sql for sql in texts(case))
        for sql in texts(case):
            assert not (partitioned and "STORED" in sql)
            assert not (partitioned and re.match("MERGE.*UPDATE.*THEN INSERT", sql))
            assert not re.match("MERGE.*SET k", sql)
        excluded = any("NO INHERIT" in sql for sql in texts(case))
        assert not (excluded and any("own int4" in sql for sql in texts(case)))


def test_a_failing_case_shrinks() -> None:
    assert_shrinks(TransitionTables(), scene=8, steps=4, characters=50, construct="DELETE FROM")
