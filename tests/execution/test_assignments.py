"""Which arms an oracle judges, and what is said of the others."""

from dataclasses import replace
from typing import cast

from fuzz.campaign.worker import explained_arm
from fuzz.execution.judging import absences, assignments
from fuzz.servers.arm import Arm
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from oracles.crash import Crash
from oracles.plan import Plan
from oracles.result import Result
from tests.features import SHIPPED


def arm(name: str, planner: str = "base") -> Arm:
    return Arm(name, cast(Build, None), cast(Cluster, None), ("base", name), planner)


ORACLES = (Plan(), Result())
MASTER, SAME, OTHER = arm("master"), arm("same"), arm("other", "other")


def judged(*arms: Arm) -> dict[str, tuple[str, ...]]:
    return {assignment.oracle.name: assignment.arms for assignment in assignments(ORACLES, arms)}


def test_all_arms_sit_before_an_oracle_that_is_for_all() -> None:
    assert judged(MASTER, OTHER) == {"result": ("master", "other")}


def test_an_arm_alone_sits_before_those_that_need_no_other() -> None:
    only = (MASTER,)
    assert [assignment.arms for assignment in assignments((Crash(), *ORACLES), only)] == [("master",)]
    assert list(absences((Crash(), *ORACLES), only)) == [
        "plan, result: not asked, there is no other arm to hold master against"
    ]


def test_plans_are_compared_between_arms_that_differ_in_plan_neutral_patches() -> None:
    assert judged(MASTER, OTHER, SAME)["plan"] == ("master", "same")
    assert "plan" not in judged(OTHER, MASTER, SAME)


def test_an_arm_that_is_left_out_is_named_with_its_reason() -> None:
    assert list(absences(ORACLES, (MASTER, SAME))) == []
    assert list(absences(ORACLES, (MASTER, OTHER, SAME))) == [
        "plan: not compared, plans of other may be others than those of master"
    ]


def test_reach_is_that_of_the_last_arm_with_features() -> None:
    with_filter = replace(SAME, features=SHIPPED)
    assert explained_arm((MASTER, with_filter, OTHER)) == with_filter
    assert explained_arm((MASTER, SAME, OTHER)) == OTHER


def test_oracles_get_the_features_of_all_arms() -> None:
    (assignment,) = assignments((Result(),), (MASTER, replace(SAME, features=SHIPPED)))
    assert assignment.oracle.features == SHIPPED
