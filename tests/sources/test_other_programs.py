"""Tests of external fuzzers on real servers: SQLsmith's crashes become cases, and a relay forwards SQLancer's TCP."""

import random
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from fuzz.engines.sqlsmith import Smith, cases, run
from fuzz.execution.executor import Executor
from fuzz.execution.judging import Assignment, judge_case
from fuzz.execution.source_database import SourceDatabase
from fuzz.generators.generator import Scale
from fuzz.servers.arm import Arm
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from fuzz.servers.modules import FAULT_INJECTOR, ensure_module
from fuzz.servers.relay import Login, relay
from fuzz.servers.settings import RELAY_ROLES
from fuzz.sources import sqlsmith
from fuzz.sources.qpg import Guide
from fuzz.sources.source import UserInput
from fuzz.sources.sqlancer.logs import SqlancerLog, case_of
from fuzz.sources.sqlsmith import SqlSmith
from oracles.framework.canaries import canary_case, query
from oracles.model.case import SameRows, Step
from oracles.model.observation import Outcome, Run
from oracles.reported import Reported
from oracles.sql.parsing import MOST_LEVELS

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

ALL_ROLES = b"SELECT rolname FROM pg_roles ORDER BY 1"
SCENE = canary_case().scene
MADE = ("CREATE TABLE t0(c0 int)", "INSERT INTO t0(c0) VALUES(1), (NULL)", "ALTER TABLE t0 ALTER c0 DROP EXPRESSION")


@pytest.fixture(scope="module")
def arm(build: Build) -> Iterator[Arm]:
    with Cluster(build, "others") as cluster:
        yield Arm("only", build, cluster, (build.tree,))


@pytest.fixture(scope="module")
def target(arm: Arm) -> Iterator[SourceDatabase]:
    with closing(SourceDatabase(arm, "others", UserInput())) as target:
        yield target


def test_crashes_of_sqlsmith_become_cases(arm: Arm, target: SourceDatabase) -> None:
    ensure_module(arm.build, FAULT_INJECTOR)
    fault = f"-c session_preload_libraries={FAULT_INJECTOR} -c pgduel_faults.action=segv -c search_path=duel,public"
    with target.session(SCENE) as connection:
        database = connection.info.dbname
    found = run(Smith(seed=1, queries=60), arm.cluster, database, 120, fault)
    assert found.deaths
    alone, *_ = cases(SCENE, found.deaths[0].statements)
    assert "canary" in alone.steps[-1].sql
    with Executor((arm,), "replay") as executor:  # has no planted fault
        seen = executor.observe(alone, [Run("only", ())])[Run("only", ())]
    assert seen.crash is None
    assert seen.steps[-1].outcome is not Outcome.LOST


def test_sqlsmiths_statements_that_pglast_refuses_are_left_out(
    target: SourceDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = "SELECT 1" + "+1" * MOST_LEVELS  # valid for the server
    monkeypatch.setattr(sqlsmith, "draw", lambda *_: (deep, "SELECT 2"))
    made = SqlSmith(target).generate(random.Random(1), Scale(rows=20, relations=2, queries=2))
    assert [step.sql for step in made.steps] == ["SELECT 2"]


@pytest.fixture
def login(arm: Arm) -> Iterator[Login]:
    with relay(arm.cluster.socket_dir, arm.cluster.port) as login:
        yield login


def connect(login: Login, **changed: Any) -> psycopg.Connection[tuple[object, ...]]:
    """Connect by TCP, like JDBC."""
    fields: dict[str, Any] = {"port": login.port, "user": login.user, "password": login.password, "dbname": "postgres"}
    fields |= {"host": "127.0.0.1", "passfile": "/dev/null", "require_auth": "scram-sha-256"}
    return psycopg.connect(make_conninfo(**(fields | changed)))


@pytest.mark.parametrize("sslmode", ["disable", "prefer"])
@pytest.mark.parametrize("gssencmode", ["disable", "prefer"])
def test_clients_like_jdbc_reach_the_server(sslmode: str, gssencmode: str, login: Login) -> None:
    with connect(login, sslmode=sslmode, gssencmode=gssencmode) as connection:
        assert connection.execute("SELECT sum(g) FROM generate_series(1, 100000) AS g").fetchone() == (5000050000,)
        row = connection.execute("SELECT rolname, rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
    assert row == (login.user, True)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"password": "wrong"}, "password authentication failed"),
        ({"password": None}, "no password supplied"),
        ({"user": "postgres"}, "its own role only"),
        ({"user": "postgres", "password": None, "require_auth": None}, "its own role only"),
        ({"user": RELAY_ROLES}, "its own role only"),
        ({"options": "-c session_authorization=postgres", "password": "wrong"}, "password authentication failed"),
        ({"replication": "true"}, "does not forward replication"),
        ({"sslmode": "require"}, "does not support SSL"),
    ],
)
def test_others_do_not_reach_the_server(changed: dict[str, str | None], message: str, login: Login) -> None:
    with pytest.raises(psycopg.OperationalError, match=message):
        connect(login, **changed)


def test_a_password_is_valid_for_its_own_relay_only(arm: Arm, login: Login) -> None:
    with relay(arm.cluster.socket_dir, arm.cluster.port) as other:
        connect(other).close()
        with pytest.raises(psycopg.OperationalError, match="its own role only"):
            connect(login, port=other.port)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            connect(other, password=login.password)


def test_a_relays_role_needs_its_password_at_the_socket_as_well(arm: Arm, login: Login) -> None:
    host, port = str(arm.cluster.socket_dir), arm.cluster.port
    psycopg.connect(host=host, port=port, user=login.user, password=login.password, dbname="postgres").close()
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(host=host, port=port, user=login.user, dbname="postgres", passfile="/dev/null")


def test_a_relay_leaves_no_role_and_no_password(arm: Arm) -> None:
    verbose = {"log_statement": "all", "log_min_messages": "debug1", "log_min_error_statement": "debug5"}
    before = arm.cluster.log_size()
    with administrator(arm) as admin:
        roles_before = admin.execute(ALL_ROLES).fetchall()
        for name, value in verbose.items():
            admin.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
        admin.execute("SELECT pg_reload_conf()")
        with relay(arm.cluster.socket_dir, arm.cluster.port) as login:
            connect(login).close()
        roles = admin.execute(ALL_ROLES).fetchall()
        for name in verbose:
            admin.execute(f"ALTER SYSTEM RESET {name}".encode())
        admin.execute("SELECT pg_reload_conf()")
    assert roles == roles_before
    assert login.password not in repr(login)
    logged = arm.cluster.log_since(before)
    assert login.user in logged
    assert login.password not in logged


def test_a_relay_ends_although_its_role_owns_a_database(arm: Arm) -> None:
    with administrator(arm) as admin:
        with relay(arm.cluster.socket_dir, arm.cluster.port) as login:
            admin.execute(f"CREATE DATABASE left_over OWNER {login.user}".encode())
        row = admin.execute("SELECT rolcanlogin FROM pg_roles WHERE rolname = %s", [login.user]).fetchone()
        assert row == (False,)
        admin.execute("DROP DATABASE left_over")
        admin.execute(f"DROP ROLE {login.user}".encode())


def test_a_relay_outlives_its_server(build: Build) -> None:
    with Cluster(build, "gone") as cluster, relay(cluster.socket_dir, cluster.port) as login:
        cluster.kill9()
        with pytest.raises(psycopg.OperationalError, match="no server listens"):
            connect(login)


def administrator(arm: Arm) -> psycopg.Connection[tuple[object, ...]]:
    host = str(arm.cluster.socket_dir)
    return psycopg.connect(host=host, port=arm.cluster.port, user="postgres", dbname="postgres", autocommit=True)


def report(first: str, second: str) -> SqlancerLog:
    message = f'The size of the result sets mismatch (1 and 2)!\nFirst query: "{first}", whose cardinality is: 1\n'
    return SqlancerLog(7, MADE, f'java.lang.AssertionError: {message}Second query:"{second}", whose cardinality is: 2')


@pytest.mark.parametrize(
    ("second", "findings"),
    [
        (
            "SELECT c0 FROM t0 WHERE c0 > 0;SELECT c0 FROM t0 WHERE NOT c0 > 0;SELECT c0 FROM t0 WHERE c0 > 0 IS NULL",
            False,
        ),
        ("SELECT c0 FROM t0 WHERE c0 > 0", 1),  # simulates lost rows
    ],
)
def test_a_report_is_confirmed_by_the_rows_of_its_queries(
    second: str,
    findings: int,
    arm: Arm,
    target: SourceDatabase,
) -> None:
    case = case_of(report("SELECT c0 FROM t0", second), target)
    assert case.steps[-1].same_rows is SameRows.BY_MEANING
    with Executor((arm,), "reports") as executor:
        judged = judge_case(executor, (Assignment(Reported(), ("only",)),), case)
    assert len(judged.findings) == findings


def test_a_report_of_random_rows_is_not_judged(target: SourceDatabase) -> None:
    case = case_of(report("SELECT c0 FROM t0", "SELECT c0 FROM t0 WHERE random() > 0.5"), target)
    assert not any(step.tags for step in case.steps)


def test_a_scene_without_new_plans_is_mutated(target: SourceDatabase) -> None:
    scene = (
        Step("CREATE TABLE r (a int, b int)"),
        Step("INSERT INTO r SELECT g, g % 5 FROM generate_series(1, 5000) AS g"),
        Step("ANALYZE r"),
    )
    queries = [query(f"SELECT b FROM r WHERE a = {number}") for number in range(6)]
    with target.session(scene) as connection:
        guide = Guide(connection, random.Random(3))
        steps = guide.steps(queries, 20)
    assert len(guide.shapes) > 1
    assert steps[0] == queries[0]
    assert any(step.tags for step in steps)
    assert len([step for step in steps if step in queries]) == len(guide.shapes)
