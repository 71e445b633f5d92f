"""Statements of scripts as steps."""

import pytest

from fuzz.psql.script import Sent
from fuzz.sources.legality.catalog import Catalog, Function
from fuzz.sources.replaying.steps import Stager
from oracles.case import Kind, Step

FUNCTIONS = (
    Function(1, "now", 0, "f", fit=False, returns="timestamp with time zone"),
    Function(2, "nextval", 1, "f", fit=False, returns="bigint"),
    Function(3, "count", 0, "a", fit=True, returns="bigint"),
)
STAGER = Stager(Catalog({each.oid: each for each in FUNCTIONS}, {}), {"/data/t.data": b"1\n"}.get)


def staged(sql: str, data: bytes | None = None) -> Step | None:
    return STAGER.step(Sent(sql, data, 1))


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT a, count(*) FROM t GROUP BY a", Kind.QUERY),
        ("SELECT my_own(a) FROM t", Kind.COMMAND),  # nobody knows what it does
        ("SELECT a INTO u FROM t", Kind.COMMAND),
        ("SELECT tableoid::regclass, a FROM t", Kind.QUERY),
        ("UPDATE t SET a = 1 RETURNING a", Kind.COMMAND),
        ("SELECT nonsense FROM WHERE", Kind.COMMAND),
        ("COPY t TO STDOUT", Kind.COPY_OUT),
    ],
)
def test_statements_run_as_they_are(sql: str, kind: Kind) -> None:
    assert staged(sql) == Step(sql, kind, may_fail=True)


@pytest.mark.parametrize("sql", ["SELECT now()", "SELECT nextval('s')", "SELECT xmin FROM t", "SELECT tableoid FROM t"])
def test_rows_that_tell_of_the_server_are_not_seen(sql: str) -> None:
    step = staged(sql)
    assert step is not None
    assert step.kind is Kind.COMMAND
    assert step.sql.startswith("DO E'BEGIN EXECUTE E''")


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE ROLE r",
        "CREATE DATABASE d",
        "COMMENT ON ROLE r IS 'x'",
        "ALTER SYSTEM SET work_mem = 1",
        "CREATE EVENT TRIGGER e ON sql_drop EXECUTE FUNCTION f()",
        "LISTEN a",
        "SET statement_timeout = 0",
        "SHOW ALL",
        "COMMIT PREPARED 'x'",
        "SELECT relname FROM pg_class",
        "SELECT * FROM information_schema.tables",
        "DELETE FROM pg_catalog.pg_class",
        "EXPLAIN UPDATE t SET a = 1",
        "COPY t FROM PROGRAM 'ls'",
        "COPY t TO '/tmp/x'",
        "COPY t FROM '/tmp/x'",
        "SELECT :answer",
        "-- nothing",
    ],
)
def test_what_acts_on_more_than_the_case_is_left_out(sql: str) -> None:
    assert staged(sql) is None


def test_explained_queries_run() -> None:
    assert staged("EXPLAIN (COSTS OFF) SELECT a FROM t") == Step("SELECT a FROM t", Kind.QUERY, may_fail=True)
    assert staged("EXPLAIN ANALYZE DELETE FROM t") == Step("DELETE FROM t", may_fail=True)


def test_files_become_data() -> None:
    assert staged("COPY t FROM '/data/t.data'") == Step("COPY t FROM STDIN", Kind.COPY_IN, b"1\n", may_fail=True)
    assert staged("COPY t FROM stdin", b"2\n") == Step("COPY t FROM stdin", Kind.COPY_IN, b"2\n", may_fail=True)


def test_a_transaction_is_not_prepared_to_outlive_its_session() -> None:
    assert staged("PREPARE TRANSACTION 'x'") == Step("ROLLBACK", may_fail=True)
