"""Tests of trials on a real server: a fault that one arm shows is conspicuous."""

from dataclasses import replace

import pytest

from fuzz.campaign.canaries import FaultyExecutor
from fuzz.execution.executor import Executor
from fuzz.execution.judging import Observer, assignments
from fuzz.execution.trial import tried
from fuzz.servers.arm import Arm
from fuzz.servers.modules import FAULT_INJECTOR, ensure_module
from oracles.framework.canaries import canary_case, query
from oracles.model.case import Step
from oracles.model.oracle import all_oracles

pytestmark = pytest.mark.servers

SOUND = query("SELECT n FROM canary")
FAILING = query("SELECT 1 / (n - 1) FROM canary")


def is_conspicuous(executor: Observer, arm: Arm, *steps: Step) -> bool:
    return bool(tried(executor, canary_case(*steps), arm.name, assignments(all_oracles(), [arm])))


@pytest.mark.parametrize(
    "fault", ["assert", "segv", "leak_tupdesc", "leak_pin", "leak_temp_file", "leak_remote_session", "change_sqlstate"]
)
def test_a_fault_of_one_arm_is_conspicuous(executor: Executor, twins: tuple[Arm, ...], fault: str) -> None:
    arm = twins[1]
    ensure_module(arm.build, FAULT_INJECTOR)
    faulty = FaultyExecutor(executor, arm.name, fault)
    assert is_conspicuous(faulty, arm, replace(FAILING, may_fail=True), SOUND)


def test_statements_that_fail_unexpectedly_or_meet_a_time_limit_are_conspicuous(
    executor: Executor, twins: tuple[Arm, ...]
) -> None:
    assert is_conspicuous(executor, twins[1], FAILING)
    assert not is_conspicuous(executor, twins[1], replace(FAILING, may_fail=True))
    assert not is_conspicuous(executor, twins[1], SOUND)
    with Executor(twins, "limited", statement_timeout_ms=200) as limited:
        assert is_conspicuous(limited, twins[1], query("SELECT pg_sleep(n) FROM canary"))
