"""Tests of trials on a real server: what one arm shows by itself is conspicuous."""

from dataclasses import replace

import pytest

from fuzz.campaign.canaries import FaultyExecutor
from fuzz.execution.executor import Executor
from fuzz.execution.judging import Observer, assignments
from fuzz.execution.trial import tried
from fuzz.servers.arm import Arm
from fuzz.servers.modules import FAULT_INJECTOR, ensure_module
from oracles.model.case import Case, Step
from oracles.model.oracle import all_oracles
from tests.execution.conftest import query

pytestmark = pytest.mark.servers

CASE = Case("test", (Step("CREATE TABLE t AS SELECT 1 AS n"),), (query("SELECT n FROM t"),))


def is_conspicuous(executor: Observer, arm: Arm, *steps: Step) -> bool:
    case = replace(CASE, steps=steps or CASE.steps)
    return tried(executor, case, arm.name, assignments(all_oracles(), [arm])).conspicuous


@pytest.mark.parametrize(
    "fault", ["assert", "segv", "leak_tupdesc", "leak_pin", "leak_temp_file", "leak_remote_session", "change_sqlstate"]
)
def test_a_fault_of_one_arm_is_conspicuous(executor: Executor, twins: tuple[Arm, ...], fault: str) -> None:
    arm = twins[1]
    ensure_module(arm.build, FAULT_INJECTOR)
    faulty = FaultyExecutor(executor, arm.name, fault)
    failing = query("SELECT 1 / (n - 1) FROM t")
    assert is_conspicuous(faulty, arm, replace(failing, may_fail=True), *CASE.steps)


def test_statements_that_fail_unexpectedly_or_meet_a_time_limit_are_conspicuous(
    executor: Executor, twins: tuple[Arm, ...]
) -> None:
    failing = query("SELECT 1 / (n - 1) FROM t")
    assert is_conspicuous(executor, twins[1], failing)
    assert not is_conspicuous(executor, twins[1], replace(failing, may_fail=True))
    assert not is_conspicuous(executor, twins[1])
    with Executor(twins, "limited", statement_timeout_ms=200) as limited:
        assert is_conspicuous(limited, twins[1], query("SELECT pg_sleep(n) FROM t"))
