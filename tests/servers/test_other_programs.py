"""What SQLsmith crashes becomes cases; what only speaks TCP reaches a server that listens on a Unix socket only."""

import random
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from fuzz.campaign.canaries import SABOTEUR
from fuzz.campaign.seats import Seat
from fuzz.campaign.trial import try_case
from fuzz.engines.sqlsmith import Smith, cases, run
from fuzz.execution.rehearsal import Rehearsal
from fuzz.execution.stage import Stage
from fuzz.servers.arm import Arm
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from fuzz.servers.modules import ensure_module
from fuzz.servers.relay import relay
from fuzz.sources.qpg import Guide
from fuzz.sources.sqlancing.logs import Log
from fuzz.sources.sqlancing.reports import case_of
from fuzz.sources.target import Given
from oracles.canary_case import canary_case, query
from oracles.case import Step
from oracles.observation import Outcome, Run
from oracles.reported import AS_BEFORE, Reported

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

SCENE = canary_case().scene
MADE = ("CREATE TABLE t0(c0 int)", "INSERT INTO t0(c0) VALUES(1), (NULL)", "ALTER TABLE t0 ALTER c0 DROP EXPRESSION")


@pytest.fixture(scope="module")
def arm(build: Build) -> Iterator[Arm]:
    with Cluster(build, "others") as cluster:
        yield Arm("only", build, cluster, (build.tree,))


@pytest.fixture(scope="module")
def target(arm: Arm) -> Iterator[Rehearsal]:
    with closing(Rehearsal(arm, "others", Given())) as target:
        yield target


def test_what_crashes_under_sqlsmith_becomes_cases(arm: Arm, target: Rehearsal) -> None:
    ensure_module(arm.build, SABOTEUR)
    sabotage = f"-c session_preload_libraries={SABOTEUR} -c pgduel_saboteur.action=segv -c search_path=duel,public"
    with target.played(SCENE) as connection:
        database = connection.info.dbname
    found = run(Smith(seed=1, queries=60), arm.cluster, database, 120, sabotage)
    assert found.deaths
    alone, *_ = cases(SCENE, found.deaths[0])
    assert "canary" in alone.steps[-1].sql
    with Stage((arm,), "replay") as stage:  # which nobody sabotages
        seen = stage.observe(alone, [Run("only", ())])[Run("only", ())]
    assert seen.crash is None
    assert seen.steps[-1].outcome is not Outcome.LOST


def test_jdbc_would_reach_the_server(arm: Arm) -> None:
    socket = arm.cluster.socket_dir / f".s.PGSQL.{arm.cluster.port}"
    with (
        relay(socket) as port,
        psycopg.connect(
            host="127.0.0.1", port=port, user="postgres", dbname="postgres", sslmode="disable"
        ) as connection,
    ):
        assert connection.execute("SELECT sum(g) FROM generate_series(1, 100000) AS g").fetchone() == (5000050000,)


def report(first: str, second: str) -> Log:
    said = f'The size of the result sets mismatch (1 and 2)!\nFirst query: "{first}", whose cardinality is: 1\n'
    return Log(7, MADE, f'java.lang.AssertionError: {said}Second query:"{second}", whose cardinality is: 2')


@pytest.mark.parametrize(
    ("second", "findings"),
    [
        (
            "SELECT c0 FROM t0 WHERE c0 > 0;SELECT c0 FROM t0 WHERE NOT c0 > 0;SELECT c0 FROM t0 WHERE c0 > 0 IS NULL",
            False,
        ),
        ("SELECT c0 FROM t0 WHERE c0 > 0", 1),  # as if the rest had been lost
    ],
)
def test_a_report_is_confirmed_by_what_its_queries_return(
    second: str,
    findings: int,
    arm: Arm,
    target: Rehearsal,
) -> None:
    case = case_of(report("SELECT c0 FROM t0", second), target)
    assert case.steps[-1].tags == (AS_BEFORE,)
    with Stage((arm,), "reports") as stage:
        trial = try_case(stage, (Seat(Reported(), ("only",)),), case)
    assert len(trial.findings) == findings


def test_a_report_of_what_is_random_claims_nothing(target: Rehearsal) -> None:
    case = case_of(report("SELECT c0 FROM t0", "SELECT c0 FROM t0 WHERE random() > 0.5"), target)
    assert not any(step.tags for step in case.steps)


def test_a_scene_is_mutated_where_no_new_plan_shows_up(target: Rehearsal) -> None:
    scene = (
        Step("CREATE TABLE r (a int, b int)"),
        Step("INSERT INTO r SELECT g, g % 5 FROM generate_series(1, 5000) AS g"),
        Step("ANALYZE r"),
    )
    asked = [query(f"SELECT b FROM r WHERE a = {number}") for number in range(6)]
    with target.played(scene) as connection:
        guide = Guide(connection, random.Random(3))
        steps = guide.steps(asked, 20)
    assert len(guide.shapes) > 1
    assert steps[0] == asked[0]
    assert any(step.tags for step in steps)
    assert len([step for step in steps if step in asked]) == len(guide.shapes)
