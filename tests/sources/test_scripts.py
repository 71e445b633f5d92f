"""Tests of `StepConverter` and `Roles`: statements of scripts become steps of a case."""

import random

import pytest

from fuzz.sources.determinism.catalog import Catalog, Function
from fuzz.sources.scripts.psql import Sent
from fuzz.sources.scripts.roles import Roles, role_made
from fuzz.sources.scripts.steps import StepConverter
from fuzz.sources.source import UNPARSED
from oracles.model.case import Kind, Step

FUNCTIONS = (
    Function(1, "now", 0, "f", fit=False, returns="timestamp with time zone"),
    Function(2, "nextval", 1, "f", fit=False, returns="bigint"),
    Function(3, "count", 0, "a", fit=True, returns="bigint"),
)
CONVERTER = StepConverter(Catalog({each.oid: each for each in FUNCTIONS}, {}), {"/data/t.data": b"1\n"}.get)


def converted(sql: str, data: bytes | None = None) -> Step | None:
    return CONVERTER.step(Sent(sql, data, 1))


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT a, count(*) FROM t GROUP BY a", Kind.QUERY),
        ("SELECT my_own(a) FROM t", Kind.COMMAND),  # an unknown function
        ("SELECT a INTO u FROM t", Kind.COMMAND),
        ("WITH d AS (SELECT a FROM t) SELECT a FROM d", Kind.QUERY),
        ("WITH d AS (DELETE FROM t RETURNING a) SELECT a FROM d", Kind.COMMAND),  # a repetition would read other rows
        ("CREATE TABLE u AS SELECT now()", Kind.COMMAND),
        ("CREATE VIEW v AS SELECT a FROM t", Kind.COMMAND),
        ("SELECT tableoid::regclass, a FROM t", Kind.QUERY),
        ("SELECT 't'::regclass, '7'::oid", Kind.QUERY),
        ("UPDATE t SET a = 1 RETURNING a", Kind.COMMAND),
        ("COPY t TO STDOUT", Kind.COPY_OUT),
    ],
)
def test_statements_become_steps_unchanged(sql: str, kind: Kind) -> None:
    assert converted(sql) == Step(sql, kind, may_fail=True)


@pytest.mark.parametrize(
    ("data", "kind"), [(None, Kind.COMMAND), (b"1\n", Kind.COPY_IN)], ids=["command", "COPY with data"]
)
def test_statements_that_cannot_be_parsed_become_steps_with_a_tag(data: bytes | None, kind: Kind) -> None:
    sql = "COPY NEWLY t FROM STDIN"
    assert converted(sql, data) == Step(sql, kind, data, may_fail=True, tags=(UNPARSED,))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT now()",
        "SELECT nextval('s')",
        "SELECT xmin FROM t",
        "SELECT tableoid FROM t",
        "SELECT ('t'::regclass)::oid",
    ],
)
def test_rows_that_depend_on_the_server_are_not_returned(sql: str) -> None:
    step = converted(sql)
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
        "CREATE TABLE t AS SELECT * FROM pg_settings",
        "CREATE TABLE t AS SELECT * FROM now()",
        "INSERT INTO t SELECT relname FROM pg_class",
        "CREATE VIEW v AS SELECT * FROM pg_class",
        "PREPARE p AS SELECT * FROM pg_class",
        "COPY (SELECT relname FROM pg_class) TO STDOUT",
        "COPY pg_class TO STDOUT",
        "EXPLAIN UPDATE t SET a = 1",
        "EXPLAIN WITH d AS (DELETE FROM t RETURNING a) SELECT a FROM d",
        "COPY t FROM PROGRAM 'ls'",
        "COPY t TO '/tmp/x'",
        "COPY t FROM '/tmp/x'",
        "SELECT :answer",
        "-- nothing",
    ],
)
def test_statements_with_effects_outside_of_the_case_are_left_out(sql: str) -> None:
    assert converted(sql) is None


def test_explained_queries_run() -> None:
    assert converted("EXPLAIN (COSTS OFF) SELECT a FROM t") == Step("SELECT a FROM t", Kind.QUERY, may_fail=True)
    assert converted("EXPLAIN ANALYZE DELETE FROM t") == Step("DELETE FROM t", may_fail=True)


def test_a_prepared_statement_runs_if_explain_runs_it() -> None:
    assert converted("EXPLAIN (ANALYZE) EXECUTE p(1)") == Step("EXECUTE p(1)", may_fail=True)
    assert converted("EXPLAIN EXECUTE p(1)") is None


def test_output_of_explain_in_functions_is_not_returned() -> None:
    converter = StepConverter(CONVERTER.catalog, CONVERTER.file)
    body = "FOR l IN EXECUTE 'EXPLAIN ' || q LOOP RETURN NEXT l; END LOOP"
    for name, does in (("plan", body), ("nested", "RETURN QUERY SELECT plan(q)"), ("other", "RETURN 1")):
        made = f"CREATE FUNCTION {name}(q text) RETURNS SETOF text LANGUAGE plpgsql AS $$BEGIN {does}; END$$"
        assert converter.step(Sent(made, None, 1)) == Step(made, may_fail=True)
    seen = [converter.step(Sent(f"SELECT {name}('x')", None, 1)) for name in ("plan", "nested", "other")]
    assert [step is not None and step.sql.startswith("DO ") for step in seen] == [True, True, False]


def test_files_become_data() -> None:
    assert converted("COPY t FROM '/data/t.data'") == Step("COPY t FROM STDIN", Kind.COPY_IN, b"1\n", may_fail=True)
    assert converted("COPY t FROM stdin", b"2\n") == Step("COPY t FROM stdin", Kind.COPY_IN, b"2\n", may_fail=True)


def test_a_transaction_is_not_prepared_to_outlive_its_session() -> None:
    assert converted("PREPARE TRANSACTION 'x'") == Step("ROLLBACK", may_fail=True)


SCRIPT = tuple(
    Sent(sql, None, 1)
    for sql in ("CREATE USER regress_a", "CREATE ROLE regress_b", "ALTER ROLE regress_b RENAME TO regress_c")
)


def test_roles_of_a_script_have_new_names_in_each_case() -> None:
    one, other = (Roles.of(SCRIPT, random.Random(seed)) for seed in (1, 2))
    assert not one.names & other.names
    named = one.named(Sent("SELECT 'regress_a', regress_ab, regress_d FROM regress_c", b"regress_b\n", 1))
    assert named.sql == f"SELECT 'regress_a{one.suffix}', regress_ab, regress_d FROM regress_c{one.suffix}"
    assert named.data == f"regress_b{one.suffix}\n".encode()


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("CREATE USER regress_a", True),
        ("CREATE ROLE admin", False),
        ("GRANT pg_read_all_data TO regress_a", True),
        ("GRANT regress_a TO postgres", False),
        ("GRANT regress_a TO CURRENT_USER", False),
        ("ALTER ROLE regress_a SET work_mem = '1MB'", True),
        ("ALTER ROLE ALL SET work_mem = '1MB'", False),
        ("ALTER ROLE regress_b RENAME TO regress_c", True),
        ("ALTER ROLE regress_b RENAME TO admin", False),
        ("ALTER ROLE CURRENT_USER NOSUPERUSER", False),
        ("ALTER FUNCTION f() OWNER TO regress_a", True),
        ("ALTER DATABASE d OWNER TO regress_a", False),
        ("COMMENT ON ROLE regress_a IS 'x'", True),
        ("COMMENT ON ROLE postgres IS 'x'", False),
        ("DROP OWNED BY regress_a", True),
        ("DROP OWNED BY CURRENT_USER", False),
        ("DROP ROLE regress_a, regress_c", True),
        ("DROP ROLE regress_a, pgduel", False),
        ("GRANT SET ON PARAMETER work_mem TO regress_a", False),
    ],
)
def test_only_statements_about_a_scripts_own_roles_are_run(sql: str, *, kept: bool) -> None:
    roles = Roles.of(SCRIPT, random.Random(1))
    converter = StepConverter(CONVERTER.catalog, CONVERTER.file, roles.names)
    assert (converter.step(roles.named(Sent(sql, None, 1))) is not None) == kept


def test_a_user_mapping_is_no_role() -> None:
    assert role_made("CREATE USER MAPPING FOR regress_a SERVER s") == ""
    assert role_made("create group Regress_A") == "regress_a"
