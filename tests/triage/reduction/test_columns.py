"""Tests of passes on columns: a column is dropped in all statements that list it, and fields of data are shortened."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fuzz.triage.reduction.columns import mentioned, without
from fuzz.triage.reduction.passes.drop import drop_columns
from fuzz.triage.reduction.passes.shorten import shorten_fields
from fuzz.triage.reduction.reducer import Pass, reduce
from oracles.model.case import Case, Kind, Step

TABLE = Step("CREATE TABLE t (id int4 NOT NULL, k int4, CHECK (k < 9), UNIQUE (id, k)) PARTITION BY RANGE (id)")
QUERY = Step("SELECT id FROM t", Kind.QUERY)


def reduced(case: Case, is_interesting: Callable[[Case], bool], a_pass: Pass) -> Case:
    return reduce(case, is_interesting, seconds=60, replay="", passes=(a_pass,)).case


@pytest.mark.parametrize(
    ("step", "left"),
    [
        (TABLE, Step("CREATE TABLE t (id int4 NOT NULL) PARTITION BY range (id)")),
        (Step("CREATE TABLE u (k int4)"), Step("CREATE TABLE u (k int4)")),
        (Step("CREATE INDEX ON t (k, id)"), Step("CREATE INDEX ON t (id)")),
        (Step("CREATE INDEX ON t (k)"), None),
        (Step("CREATE STATISTICS ON k, id, (id + 1) FROM t"), Step("CREATE STATISTICS ON id, (id + 1) FROM t")),
        (Step("INSERT INTO t VALUES (1, 2), (4, 5)"), Step("INSERT INTO t VALUES (1), (4)")),
        (
            Step("INSERT INTO t (k, id) SELECT a, b FROM s UNION SELECT 1, 2 ORDER BY 2, 1"),
            Step("INSERT INTO t (id) SELECT b FROM s UNION SELECT 2 ORDER BY 1"),
        ),
        (Step("INSERT INTO t SELECT * FROM s"), Step("INSERT INTO t SELECT * FROM s")),
        (
            Step("COPY t FROM STDIN", Kind.COPY_IN, b"1\t2\n3\\\t\t\\N\nbad\n\\.\n"),
            Step("COPY t FROM STDIN", Kind.COPY_IN, b"1\n3\\\t\nbad\n\\.\n"),
        ),
        (
            Step("COPY t (k, id) FROM STDIN (FORMAT csv, DELIMITER '|')", Kind.COPY_IN, b'"|""|"|1\r\n,|\r\n"2|3'),
            Step("COPY t (id) FROM STDIN WITH (FORMAT csv, DELIMITER '|')", Kind.COPY_IN, b'1\r\n\r\n"2|3'),
        ),
        (
            Step("COPY t FROM STDIN (FORMAT binary)", Kind.COPY_IN, b"PGCOPY\n1\t2"),
            Step("COPY t FROM STDIN (FORMAT binary)", Kind.COPY_IN, b"PGCOPY\n1\t2"),
        ),
        (Step("SELECT k FROM t"), Step("SELECT k FROM t")),
        (Step("not SQL"), Step("not SQL")),
    ],
)
def test_a_column_is_dropped_from_all_lists(step: Step, left: Step | None) -> None:
    case = Case("g", (TABLE,), (step,))
    assert without(case, lambda table, name: (table, name) == ("t", "k")).steps == (() if left is None else (left,))


def test_columns_of_queries_and_partition_keys_are_mentioned() -> None:
    queries = (Step("SELECT a FROM t WHERE b = 1"), Step("INSERT INTO t (e) SELECT c FROM t"))
    assert mentioned(Case("g", (TABLE,), queries)) == {"id", "a", "b", "c"}


def test_unnecessary_columns_are_dropped() -> None:
    scene = (
        Step("CREATE TABLE t (a int4, b int4, c int4)"),
        Step("ALTER TABLE t ADD COLUMN d int4, ADD COLUMN e int4"),
        Step("COPY t FROM STDIN", Kind.COPY_IN, b"1\t2\t3\t4\t5\n6\t7\t8\t9\t0\n"),
    )

    def is_interesting(case: Case) -> bool:
        *made, filled = case.scene
        data = filled.copy_data or b""
        return data.count(b"\t") == 2 * sum(step.sql.count(" int4") for step in made) - 2 and b"8" in data

    left = reduced(Case("g", scene, (QUERY,)), is_interesting, drop_columns)
    assert left.scene == (Step("CREATE TABLE t (c int4)"), replace(scene[2], copy_data=b"3\n8\n"))


def test_unnecessarily_long_fields_are_shortened() -> None:
    step = Step("COPY t FROM STDIN (FORMAT csv)", Kind.COPY_IN, b"12,abcdef,x\n345,ab,\nbad\n")
    left = reduced(Case("g", (), (step,)), lambda case: b"abc" in (case.steps[0].copy_data or b""), shorten_fields)
    assert left.steps[0].copy_data == b",abc,\n,ab,\n\n"
