"""Tests of `assignments` and `absences`: the arms that an oracle judges, and the reasons for others."""

from dataclasses import replace
from typing import cast

from fuzz.execution.judging import absences, assignments
from fuzz.servers.arm import Arm, explained_arm
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


def test_an_oracle_without_conditions_judges_all_arms() -> None:
    assert judged(MASTER, OTHER) == {"result": ("master", "other")}


def test_a_single_arm_is_judged_by_oracles_that_need_no_other() -> None:
    only = (MASTER,)
    assert [assignment.arms for assignment in assignments((Crash(), *ORACLES), only)] == [("master",)]
    assert list(absences((Crash(), *ORACLES), only)) == [
        "plan, result: not used, because there is no arm to compare master with"
    ]


def test_plans_of_arms_with_plan_neutral_patches_are_compared() -> None:
    assert judged(MASTER, OTHER, SAME)["plan"] == ("master", "same")
    assert "plan" not in judged(OTHER, MASTER, SAME)


def test_an_arm_that_is_left_out_is_named_with_its_reason() -> None:
    assert list(absences(ORACLES, (MASTER, SAME))) == []
    assert list(absences(ORACLES, (MASTER, OTHER, SAME))) == [
        "plan: not used, because plans of other may differ from those of master"
    ]


def test_reach_is_that_of_the_last_arm_with_features() -> None:
    with_filter = replace(SAME, features=SHIPPED)
    assert explained_arm((MASTER, with_filter, OTHER)) == with_filter
    assert explained_arm((MASTER, SAME, OTHER)) == OTHER


def test_oracles_get_the_features_of_all_arms() -> None:
    (assignment,) = assignments((Result(),), (MASTER, replace(SAME, features=SHIPPED)))
    assert assignment.oracle.features == SHIPPED
