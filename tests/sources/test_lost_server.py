"""Tests of sources that lose the server while they draw a case: a crash there is a crash of the case."""

import random
from collections.abc import Iterator
from contextlib import closing
from typing import ClassVar

import psycopg
import pytest

from fuzz.engines import seeded
from fuzz.engines.seeded import case_of
from fuzz.errors import ServerError
from fuzz.execution.executor import Executor
from fuzz.execution.judging import assignments, judge_case
from fuzz.execution.source_database import SourceDatabase
from fuzz.generators.generator import Scale
from fuzz.servers.arm import Arm
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from fuzz.sources.source import LostServer, Source, UserInput
from oracles.crash import Crash
from oracles.model.case import Case, CaseId, Step

pytestmark = [pytest.mark.servers, pytest.mark.quick, pytest.mark.timeout(300)]

SCENE = (Step("CREATE TABLE t (a int)"),)
CRASH = "COPY t TO PROGRAM 'kill -SEGV $PPID'"


class Crashing(Source):
    """A source whose statement crashes the server in the first `times` draws."""

    name: ClassVar[str] = "crashing"
    modes: ClassVar[tuple[str, ...]] = ()
    times = 0

    @classmethod
    def lacks(cls, given: UserInput) -> str:
        return ""

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        drawn = rng.randrange(1000)
        with self.target.session(SCENE) as connection:
            connection.execute(f"SELECT {drawn}")
            connection.execute("SELECT %s", (drawn,))
            if Crashing.times:
                Crashing.times -= 1
                connection.execute(CRASH.encode())
        return Case(self.name, SCENE, (Step(f"SELECT {drawn}"),))


@pytest.fixture
def own(build: Build) -> Iterator[Arm]:
    with Cluster(build, "lost") as cluster:
        yield Arm("only", build, cluster, (build.tree,))


@pytest.fixture
def target(own: Arm, monkeypatch: pytest.MonkeyPatch) -> Iterator[SourceDatabase]:
    monkeypatch.setattr(seeded, "workload_named", lambda _, target: Crashing().on(target))
    with closing(SourceDatabase(own, "lost", UserInput())) as target:
        yield target


def drawn(target: SourceDatabase, crashes: int) -> Case:
    Crashing.times = crashes
    return case_of(CaseId(1, "crashing", 0), Scale(), target)


def test_a_crash_in_each_draw_is_a_finding(own: Arm, target: SourceDatabase) -> None:
    statement, crash = (drawn(target, 0).steps[0].sql, CRASH)
    case = drawn(target, 2)
    assert case == Case("crashing", SCENE, (Step(statement, may_fail=True), Step(crash, may_fail=True)))
    with Executor([own], "judged") as executor:
        (found,) = judge_case(executor, assignments([Crash()], [own]), case).findings
    assert found.summary.startswith("only crashes: signal 11")


def test_the_case_is_drawn_again_after_a_crash_in_another_session(target: SourceDatabase) -> None:
    assert drawn(target, 1) == drawn(target, 0)


def test_an_error_of_a_live_server_is_no_loss(target: SourceDatabase) -> None:
    with pytest.raises(ServerError) as raised, target.session(()):
        raise psycopg.errors.ObjectInUse("database is in use")
    assert not isinstance(raised.value, LostServer)
