"""Tests of dependence: the statements that are compared after a statement with different effects on two sides."""

import pytest

from oracles.framework.comparison import Aspect, compare
from oracles.model.case import Case, Kind, Step
from tests.oracles.observed import error, ok, seen, timeout

SCENE = (
    "CREATE TABLE t (x int)",
    "CREATE TABLE u (x serial)",
    "CREATE TABLE p (x int) PARTITION BY LIST (x)",
    "CREATE TABLE p_1 PARTITION OF p DEFAULT",
    "CREATE TABLE q (x int) PARTITION BY LIST (x)",
    "CREATE TABLE q_1 (x int)",
    "ALTER TABLE q ATTACH PARTITION q_1 DEFAULT",
    "CREATE VIEW v AS SELECT x FROM t",
    "CREATE VIEW w AS SELECT v.x FROM v, u",
    "DO $$BEGIN EXECUTE 'CREATE TABLE q_2 PARTITION OF q DEFAULT'; END$$",
)
DIVERGING = ok(tag="INSERT 0 1"), ok(tag="INSERT 0 2")


def compared_after(change: str, *later: str, scene: tuple[str, ...] = SCENE) -> list[str]:
    """Return the later statements that are compared after a change with different effects."""
    steps = tuple(
        Step(sql, Kind.QUERY if sql.startswith("SELECT") else Kind.COMMAND) for sql in (*scene, change, *later)
    )
    before, after = [ok()] * len(scene), [ok()] * len(later)
    left, right = (seen(*before, each, *after) for each in DIVERGING)
    found = compare(Case("by_hand", (), steps), (), left, right)
    assert [place.aspect for place in found.places] == [Aspect.TAGS]
    assert not found.digested
    return [sql for number, sql in enumerate((*scene, change, *later)) if number in found.compared][len(scene) + 1 :]


INDEPENDENT = (
    "SELECT x FROM u",
    "SELECT x FROM p JOIN q USING (x) WHERE x IN (SELECT x FROM q_1)",
    "INSERT INTO p SELECT x FROM u",
    "COPY u TO STDOUT",
    "SET work_mem = '1MB'",
    "COMMIT",
    "WITH t AS (SELECT 1 AS y) UPDATE u SET x = 3",
)
DEPENDENT = (
    "SELECT x FROM t",
    "SELECT x FROM u WHERE x IN (SELECT x FROM v)",
    "SELECT x FROM w",
    "SELECT pg_relation_size('t')",
    "SELECT relpages FROM pg_class",
    "SELECT x FROM u, unknown",
    "SELECT x FROM q_2",
)


@pytest.mark.parametrize("sql", INDEPENDENT)
def test_a_statement_on_other_tables_is_compared(sql: str) -> None:
    assert compared_after("INSERT INTO t SELECT 1", sql, "SELECT x FROM u") == [sql, "SELECT x FROM u"]


@pytest.mark.parametrize("sql", DEPENDENT)
def test_a_query_that_may_read_the_table_is_not_compared_but_later_ones_are(sql: str) -> None:
    assert compared_after("INSERT INTO t SELECT 1", sql, "SELECT x FROM u") == ["SELECT x FROM u"]


@pytest.mark.parametrize(("change", "reads"), [("p", "p_1"), ("p_1", "p"), ("q", "q_1"), ("q_1", "q")])
def test_partitions_count_as_their_parents(change: str, reads: str) -> None:
    assert compared_after(f"DELETE FROM {change}", f"SELECT x FROM {reads}", "SELECT x FROM t") == ["SELECT x FROM t"]


def test_tables_written_from_different_data_are_not_compared() -> None:
    later = ("INSERT INTO u SELECT x FROM v", "SELECT x FROM u", "SELECT x FROM p")
    assert compared_after("UPDATE t SET x = 1", *later) == ["SELECT x FROM p"]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE again AS SELECT x FROM t",
        "DO 'BEGIN DELETE FROM u; END'",
        "DELETE FROM elsewhere",
        "EXECUTE prepared",
        "INSERT INTO v SELECT 1",
    ],
)
def test_nothing_is_compared_after_a_statement_with_unknown_effects(sql: str) -> None:
    assert compared_after("INSERT INTO t SELECT 1", sql, "SELECT x FROM u") == []


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN DELETE FROM u; END'",
        "ALTER TABLE u ADD FOREIGN KEY (x) REFERENCES t (x)",
        "CREATE RULE r AS ON INSERT TO t DO ALSO DELETE FROM u",
        "CREATE SEQUENCE s",
        "CREATE TABLE c (LIKE u INCLUDING DEFAULTS)",  # shares the sequence of u
        "ALTER TABLE t RENAME TO z",
        "ALTER TABLE t ADD UNIQUE (x) DEFERRABLE INITIALLY DEFERRED",
        "DO $$BEGIN EXECUTE 'ALTER TABLE t INHERIT u'; END$$",
        "not SQL",
    ],
)
def test_nothing_is_compared_if_effects_may_be_indirect(sql: str) -> None:
    assert compared_after("INSERT INTO t SELECT 1", "SELECT x FROM u", scene=(*SCENE, sql)) == []


def test_nothing_is_compared_after_transactions_differ() -> None:
    steps = (Step("CREATE TABLE t (x int)"), Step("CREATE TABLE u (x int)"), Step("INSERT INTO t SELECT 1 / x FROM t"))
    case = Case("by_hand", (), (*steps, Step("SELECT x FROM u", Kind.QUERY)))
    for status, count in (("I", 4), ("E", 3)):
        left = seen(ok(), ok(), ok(), ok())
        right = seen(ok(), ok(), error("22012", transaction=status), ok())
        assert len(compare(case, (), left, right).compared) == count
    right = seen(ok(), ok(), timeout(), ok())
    assert compare(case, (), left, right).compared == {0, 1, 3}
