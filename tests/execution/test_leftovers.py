"""Tests of objects outside of a case's schema: they are observed, and dropped before the next run."""

import subprocess

import pytest

from fuzz.errors import ServerError
from fuzz.execution.residue import resources
from fuzz.execution.wire import Reply
from oracles.model.case import Step
from oracles.model.observation import Outcome
from tests.execution.conftest import Observe

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

LEFT = (
    "CREATE SCHEMA elsewhere",
    "CREATE TABLE public.thing (a int)",
    "CREATE TYPE public.colour AS ENUM ('red')",
    "CREATE FUNCTION public.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE CAST (money AS text) WITH INOUT",
    "CREATE PUBLICATION everything FOR ALL TABLES",
    "CREATE EXTENSION pg_trgm SCHEMA public",
    "CREATE LANGUAGE mine HANDLER plpgsql_call_handler",
    "CREATE EVENT TRIGGER nothing ON ddl_command_end EXECUTE FUNCTION public.g()",
    "SELECT lo_create(4711)",
    "DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET work_mem = 64', current_database()); END$$",
)


@pytest.mark.parametrize("sql", LEFT)
def test_objects_outside_of_the_schema_do_not_reach_the_next_run(observe: Observe, sql: str) -> None:
    made = Step("CREATE FUNCTION public.g() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'")
    first, second = (observe(made, Step(sql), Step("SHOW work_mem")) for _ in range(2))
    assert [step.outcome for step in first.steps] == ["ok", "ok", "ok"], first.steps
    assert second.steps == first.steps


DROPPED = ("DROP EXTENSION btree_gist", "DROP SCHEMA public CASCADE", "DROP USER MAPPING FOR postgres SERVER loopback")


@pytest.mark.parametrize("sql", DROPPED)
def test_objects_of_the_template_that_a_case_drops_are_there_again_in_the_next_run(observe: Observe, sql: str) -> None:
    first, second = (observe(Step(sql)) for _ in range(2))
    assert [step.outcome for step in first.steps] == ["ok"], first.steps
    assert second.steps == first.steps


def test_a_case_within_its_schema_keeps_its_database(observe: Observe) -> None:
    database = Step("SELECT oid FROM pg_database WHERE datname = current_database()")
    own = Step("CREATE TABLE t (a serial PRIMARY KEY, b text)"), Step("CREATE TEMP TABLE u (a int)")
    first, second = (observe(database, *own, repeats=1).steps[0].rows for _ in range(2))  # OIDs differ between arms
    assert first == second


def test_digests_cover_all_schemas_but_not_extensions(observe: Observe) -> None:
    seen = observe(
        Step("CREATE SCHEMA elsewhere"),
        Step("CREATE TABLE elsewhere.t AS SELECT 1 AS a"),
        Step("CREATE EXTENSION pg_buffercache SCHEMA public"),
    )
    assert [name for name, _ in seen.digests] == ["elsewhere.t"]


def test_errors_of_the_statements_that_end_a_case_are_observed(observe: Observe) -> None:
    dangling = "'pg_class'::regclass, 4711, 0, 'pg_namespace'::regclass, 'duel'::regnamespace, 0, 'n'"
    seen = observe(Step(f"INSERT INTO pg_depend VALUES ({dangling})"))
    assert [(error.sqlstate, error.text.partition("\n")[0]) for error in seen.closing] == [
        ("XX000", "cache lookup failed for relation 4711")
    ]
    assert observe(Step("SELECT 1")).closing == ()
    repeated = observe(Step(f"INSERT INTO pg_depend VALUES ({dangling})"), repeats=3)
    assert (len(repeated.earlier), len(repeated.closing)) == (0, 1)  # the schema remains, so it ends


def test_an_event_trigger_against_the_end_of_a_case_is_observed(observe: Observe) -> None:
    function = "CREATE FUNCTION public.no() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'no'; END$$"
    seen = observe(Step(function), Step("CREATE EVENT TRIGGER no ON sql_drop EXECUTE FUNCTION public.no()"))
    assert [error.sqlstate for error in seen.closing] == ["P0001"]


MADE = (
    Step("CREATE ROLE duel_one"),
    Step("CREATE USER duel_two IN ROLE duel_one"),
    Step("ALTER ROLE duel_two RENAME TO duel_three"),
    Step("GRANT ALL ON SCHEMA duel, public TO PUBLIC"),
    Step("SET ROLE duel_three"),
    Step("CREATE TABLE public.t AS SELECT 1 AS a"),
    Step("GRANT SELECT ON public.t TO duel_one"),
)


def test_roles_do_not_reach_the_next_run(observe: Observe) -> None:
    for _ in range(2):
        assert {step.outcome for step in observe(*MADE).steps} == {Outcome.OK}


def test_roles_do_not_outlive_an_interrupted_run(observe: Observe) -> None:
    cut = observe(*MADE, Step("RESET ROLE"), Step("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert cut.steps[-1].outcome is Outcome.LOST
    assert {step.outcome for step in observe(*MADE).steps} == {Outcome.OK}


def test_a_backend_that_was_killed_after_its_answers_is_an_error_of_its_server() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    with pytest.raises(ServerError, match=f"process {ended.pid} ended before its resources were read"):
        resources(ended.pid, Reply(), Reply())
