"""Which arms an oracle judges, and what is said of the others."""

from typing import cast

from fuzz.campaign.seats import absences, seats
from fuzz.servers.arm import Arm
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from oracles.crash import Crash
from oracles.plan import Plan
from oracles.result import Result


def arm(name: str, *, neutral: bool = True, base: str = "base") -> Arm:
    return Arm(name, cast(Build, None), cast(Cluster, None), (base, name), neutral)


ORACLES = (Plan(), Result())
MASTER, SAME, OTHER, LATER = arm("master"), arm("same"), arm("other", neutral=False), arm("later", base="next")


def judged(*arms: Arm) -> dict[str, tuple[str, ...]]:
    return {seat.oracle.name: seat.arms for seat in seats(ORACLES, arms)}


def test_all_arms_sit_before_an_oracle_that_is_for_all() -> None:
    assert judged(MASTER, OTHER, LATER) == {"result": ("master", "other", "later")}


def test_an_arm_alone_sits_before_those_that_need_no_other() -> None:
    only = (MASTER,)
    assert [seat.arms for seat in seats((Crash(), *ORACLES), only)] == [("master",)]
    assert list(absences((Crash(), *ORACLES), only)) == [
        "plan, result: not asked, there is no other arm to hold master against"
    ]


def test_plans_are_compared_between_neutral_arms_of_one_base() -> None:
    assert judged(MASTER, OTHER, SAME, LATER)["plan"] == ("master", "same")


def test_the_first_neutral_arm_is_the_one_held_against() -> None:
    assert judged(OTHER, MASTER, SAME)["plan"] == ("master", "same")


def test_an_arm_that_is_left_out_is_named_with_its_reason() -> None:
    assert list(absences(ORACLES, (MASTER, SAME))) == []
    assert list(absences(ORACLES, (MASTER, OTHER, LATER))) == [
        "plan: not compared, other is not plan-neutral",
        "plan: not compared, later has another base",
    ]
