"""Tests of each generator and source on master and the patched server: all oracles judge a few cases."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from fuzz.engines.seeded import case_of
from fuzz.execution.executor import Executor
from fuzz.execution.judging import assignments, judge_case
from fuzz.execution.source_database import SourceDatabase
from fuzz.generators.generator import Scale, all_generators
from fuzz.servers.arm import Arm, features_of, open_arms, parse_arm
from fuzz.servers.base import Base
from fuzz.servers.flavor import FLAVORS
from fuzz.sources.source import Source, UserInput
from fuzz.sources.sqlancer.running import JAR_VARIABLE
from fuzz.sources.workloads import all_workloads
from oracles.model.case import CaseId
from oracles.model.oracle import all_oracles
from tests.sources.application import write_application

pytestmark = [pytest.mark.servers, pytest.mark.quick, pytest.mark.timeout(900)]

SMALL = Scale(rows=60, queries=8)
CASES = 2


@pytest.fixture(scope="module")
def arms(base: Base) -> Iterator[tuple[Arm, ...]]:
    with open_arms([parse_arm(name, base, FLAVORS["assert"], print) for name in ("master", "patched")], print) as arms:
        yield arms


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> UserInput:
    """Return input for all sources that need it."""
    return UserInput(str(write_application(tmp_path_factory.mktemp("application"))), os.environ.get(JAR_VARIABLE))


@pytest.fixture(scope="module")
def target(arms: tuple[Arm, ...], given: UserInput) -> Iterator[SourceDatabase]:
    with closing(SourceDatabase(arms[0], "duels", given)) as target:
        yield target


@pytest.mark.parametrize("workload", all_workloads())
def test_arms_do_not_differ(
    workload: str,
    executor: Executor,
    arms: tuple[Arm, ...],
    target: SourceDatabase,
    record_property: Callable[[str, object], None],
) -> None:
    found = all_workloads()[workload]
    if isinstance(found, Source) and (lacking := found.lacks(target.given)):
        pytest.skip(f"{workload}: {lacking}")  # the jar of SQLancer is not distributed
    judged_cases = [
        judge_case(
            executor,
            assignments(all_oracles(), arms),
            case_of(CaseId(7, workload, index), SMALL, target, features_of(arms)),
        )
        for index in range(CASES)
    ]
    assert [finding for judged in judged_cases for finding in judged.findings] == []
    assert all(judged.complete for judged in judged_cases)
    assert sum(judged.statements for judged in judged_cases) >= 5
    record_property("generators" if workload in all_generators() else "sources", workload)
