"""Tests of the generator `concurrent_changes` without servers: its constructs, turns, and shrinking."""

import re

import pytest

from fuzz.generators.concurrent_changes.generator import ConcurrentChanges
from fuzz.generators.concurrent_changes.scene import ALSO, TARGET
from fuzz.generators.loopback import PENDING
from oracles.model.case import Kind
from tests.generators.drawing import cases_of
from tests.generators.shrinking import assert_shrinks

CASES = cases_of(ConcurrentChanges, 60)
SENT = re.compile(rf"SET {re.escape(PENDING)} = \$s\$(.*)\$s\$")
CONSTRUCTS = (
    *("PARTITION BY LIST", "PARTITION BY HASH", "PARTITION BY RANGE", "INHERITS", "SERVER duel_loop", "STORED"),
    *("CREATE TRIGGER touch", "CREATE TRIGGER note", "REPEATABLE READ", "UPDATE t AS x", "UPDATE t_view AS x"),
    *("UPDATE t_instead AS x", " FROM s1 AS y", "LEFT JOIN", "GROUP BY", "DELETE FROM t AS x", " USING s2 AS y"),
    *("ON CONFLICT (k)", "ON CONFLICT (k, a)", "DO NOTHING", "MERGE INTO t", "BY SOURCE", "merge_action()"),
    *("FOR UPDATE OF x", "FOR KEY SHARE OF x", "SKIP LOCKED", "NOWAIT", "LIMIT", "WITH w AS", "EXISTS", "SET a = "),
    *("UNION ALL", "EXPLAIN (ANALYZE", "UPDATE pg_class", "MERGE INTO pg_class", "SET duel.also"),
    *("SELECT during_detachment", "SELECT interrupted_detachment", "FETCH 1 FROM old", "FINALIZE"),
)
SENT_CONSTRUCTS = ("UPDATE t SET b", "UPDATE t SET k", "UPDATE t SET a", "DELETE FROM t", "INSERT INTO t", "ROLLBACK")


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_statements_have(construct: str) -> None:
    assert any(construct in step.sql for case in CASES for step in case.all_steps)


@pytest.mark.parametrize("construct", SENT_CONSTRUCTS)
def test_the_other_session_executes(construct: str) -> None:
    assert any(construct in sent[1] for case in CASES for step in case.steps if (sent := SENT.match(step.sql)))


def test_a_session_locks_nothing_before_the_other_one_acts() -> None:
    """Otherwise the other session would wait for this one, which waits for it."""
    for case in CASES:
        pending = False
        for step in case.steps:
            if pending and not step.sql.startswith(("BEGIN", f"SET {ALSO}")):
                assert TARGET in step.sql
                pending = False
            if SENT.match(step.sql):
                pending = True
            assert not (pending and step.kind is Kind.QUERY)


def test_no_merge_inserts_for_rows_that_were_deleted() -> None:
    """PostgreSQL 17.11 and 18.6 insert rows of NULLs for those without source (corpus/README.md)."""
    for case in CASES:
        deletes = False
        for step in case.steps:
            if sent := SENT.match(step.sql):
                deletes = "DELETE" in sent[1]
            if step.sql.startswith("MERGE") and "BY SOURCE" in step.sql:
                assert not (deletes and "THEN INSERT" in step.sql), step.sql


def test_no_statement_moves_a_row_that_it_meets_twice() -> None:
    """PostgreSQL refuses that if another session changed the row."""
    for case in CASES:
        for step in case.steps:
            assert not re.search(r"UPDATE.* SET a = .*UNION ALL", step.sql), step.sql


def test_a_failing_case_shrinks() -> None:
    assert_shrinks(ConcurrentChanges(), scene=20, steps=6, characters=250, construct="FOR UPDATE")
