"""Tests of the oracle `plan` on two servers of one build: legal differences between plans."""

from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest

from fuzz.execution.executor import Executor
from fuzz.execution.judging import judge_case
from fuzz.servers.arm import Arm
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from oracles.framework.shared_runs import PLANNED
from oracles.model.case import Case, Kind, Step
from oracles.model.oracle import Agree, Inconclusive, Verdict
from oracles.plan import Plan
from tests.oracles.observed import assigned

pytestmark = pytest.mark.servers

NAMES = ("held", "free")
SCENE = (
    "CREATE TABLE changed (k int PRIMARY KEY, t text)",
    "INSERT INTO changed SELECT g, 'a' FROM generate_series(1, 70) AS g",
    "ANALYZE changed",
)
# The dead rows of two changes leave no room in the page for the third one, unless they are removed.
STEPS = (*(Step(f"UPDATE changed SET t = '{letter}'") for letter in "bcd"), Step("SELECT k FROM changed", Kind.QUERY))
CASE = Case("by_hand", tuple(map(Step, SCENE)), STEPS, samples=(PLANNED.name,))


@pytest.fixture(scope="module")
def arms(build: Build) -> Iterator[tuple[Arm, ...]]:
    with ExitStack() as stack:
        yield tuple(Arm(name, build, stack.enter_context(Cluster(build, name)), (build.tree,)) for name in NAMES)


def verdicts(executor: Executor) -> list[Verdict]:
    return [verdict for _, verdict in judge_case(executor, assigned((Plan(),), NAMES), CASE).verdicts]


def test_equal_servers_agree(executor: Executor) -> None:
    assert verdicts(executor) == [Agree(1)]


def test_dead_rows_that_a_transaction_elsewhere_keeps_are_no_finding(executor: Executor, arms: tuple[Arm, ...]) -> None:
    with psycopg.connect(**arms[0].cluster.connect_kwargs) as elsewhere:  # type: ignore[arg-type]
        elsewhere.execute("SELECT pg_current_xact_id()")
        assert verdicts(executor) == [Inconclusive("tables have other sizes")]
