"""Two arms of one build, and an executor on them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from fuzz.execution.executor import Executor
from fuzz.execution.modes import MODES
from fuzz.servers.arm import Arm
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from oracles.model.case import Case, Kind, Step
from oracles.model.mode import Mode, Protocol
from oracles.model.observation import CaseObservation, Run

Observe = Callable[..., CaseObservation]
PROTOCOLS = {mode.protocol: mode for mode in MODES.values()} | {Protocol.SIMPLE: MODES["plain"]}


@pytest.fixture(scope="package")
def twins(build: Build) -> Iterator[tuple[Arm, ...]]:
    with ExitStack() as stack:
        yield tuple(Arm(name, build, stack.enter_context(Cluster(build, name)), (build.tree,)) for name in ("a", "b"))


@pytest.fixture(scope="package")
def executor(twins: tuple[Arm, ...]) -> Iterator[Executor]:
    with Executor(twins, "tests") as executor:
        yield executor


@pytest.fixture
def observe(executor: Executor) -> Observe:
    """Return a function that runs steps on both arms, requires equal observations, and returns one of them."""

    def run(
        *steps: Step, modes: tuple[Mode, ...] = (), scene: tuple[Step, ...] = (), **fields: object
    ) -> CaseObservation:
        case = Case("test", scene, steps, modes)
        runs = [Run(arm, modes, **fields) for arm in ("a", "b")]  # type: ignore[arg-type]
        one, other = executor.observe(case, runs).values()
        if not fields:
            assert replace(one, arm="") == replace(other, arm="")
        return replace(one, steps=one.steps[len(scene) :])

    return run


def query(sql: str, *params: str | None) -> Step:
    return Step(sql, Kind.QUERY, params=params)
