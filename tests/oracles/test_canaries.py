"""Tests of all canaries on real servers: oracles report them, and the same cases without them give no finding."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from fuzz.campaign.canaries import PlantedBug, is_caught, plant, require_caught
from fuzz.errors import CanaryMissed
from fuzz.execution.executor import Executor
from fuzz.execution.judging import judge_case
from fuzz.servers.arm import Arm
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from oracles.framework.canaries import canary_case, query
from oracles.leak import Leak
from oracles.model.case import Case, Kind, Step
from oracles.model.oracle import Agree, Canary, NotApplicable, Oracle, all_oracles
from oracles.result import Result
from tests.oracles.observed import assigned

pytestmark = pytest.mark.servers

ORACLES = all_oracles()
CANARIES = [
    pytest.param(oracle, canary, id=f"{oracle.name}-{canary.fault}-{number}")
    for oracle in ORACLES
    for number, canary in enumerate(oracle.canaries)
]
NAMES = ("sound", "faulty")
COPY = Step("COPY nest FROM STDIN", Kind.COPY_IN, copy_data=b"7\ta\n8\tb\n9\tc\n")
WHOLE_FLOCK = canary_case(query("SELECT n, name FROM canary"))


@pytest.fixture(scope="module")
def arms(build: Build) -> Iterator[tuple[Arm, ...]]:
    with ExitStack() as stack:
        yield tuple(Arm(name, build, stack.enter_context(Cluster(build, name)), ()) for name in NAMES)


@pytest.fixture(scope="module")
def executor(arms: tuple[Arm, ...]) -> Iterator[Executor]:
    with Executor(arms) as executor:
        yield executor


@pytest.mark.quick
@pytest.mark.parametrize(("oracle", "canary"), CANARIES)
def test_a_planted_bug_is_found_in_the_arm_it_was_planted_in(
    oracle: Oracle,
    canary: Canary,
    executor: Executor,
    arms: tuple[Arm, ...],
    record_property: Callable[[str, object], None],
) -> None:
    assert is_caught(plant(oracle, canary, executor, arms), arms)
    record_property("oracles", oracle.name)


@pytest.mark.parametrize(
    "case",
    list(dict.fromkeys(canary.case for oracle in ORACLES for canary in oracle.canaries)),
    ids=lambda case: " ".join([case.steps[0].sql, *(mode.name for mode in case.modes)]),
)
def test_the_same_case_without_a_bug_has_no_finding(case: Case, executor: Executor) -> None:
    judged = judge_case(executor, assigned(ORACLES, NAMES), case)
    assert all(isinstance(verdict, Agree | NotApplicable) for _, verdict in judged.verdicts)
    assert [name for name, _ in judged.verdicts] == [oracle.name for oracle in ORACLES]
    assert judged.statements == len(case.all_steps)


def test_the_fault_affects_its_step_alone(executor: Executor, arms: tuple[Arm, ...]) -> None:
    judged = plant(Result(), Canary("drop_row", WHOLE_FLOCK), executor, arms)
    (found,) = judged.findings
    assert found.step == len(WHOLE_FLOCK.scene)
    assert (found.summary, found.origin) == ("step 4: 1 row missing, 0 surplus, of 4", "rows under plan Seq Scan")
    assert "1 | bird 1" in found.expected


@pytest.mark.parametrize(
    ("fault", "origin"),
    [
        ("drop_row:nest", "stored: table"),
        ("leak_tupdesc:nest", "warning: resource was not closed: TupleDesc N (N,-N)"),
        ("leak_temp_file:nest", "left: temp files"),
    ],
)
def test_faults_in_copy_are_found(fault: str, origin: str, executor: Executor, arms: tuple[Arm, ...]) -> None:
    oracle = Result() if origin.startswith("stored") else Leak()
    judged = plant(oracle, Canary(fault, canary_case(COPY)), executor, arms)
    assert origin in {found.origin for found in judged.findings}


def test_a_missed_canary_stops_the_run(executor: Executor, arms: tuple[Arm, ...]) -> None:
    judged = plant(Leak(), Canary("drop_row", WHOLE_FLOCK), executor, arms)
    assert not is_caught(judged, arms)
    with pytest.raises(CanaryMissed, match=r"leak \(drop_row\)"):
        require_caught([PlantedBug("result", "warn", 1), PlantedBug("leak", "drop_row", None)])
