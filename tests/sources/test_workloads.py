"""The workloads of a run without options: which ones it has, and how much of its CPU time each has."""

from dataclasses import dataclass
from typing import ClassVar, cast

import pytest

from fuzz.campaign.direction.direction import Direction, directed_workloads
from fuzz.execution.source_database import SourceDatabase
from fuzz.generators.generator import Generator, all_generators
from fuzz.servers.arm import Arm
from fuzz.sources.regress import Regress
from fuzz.sources.source import Source, SourceContext, UserInput
from fuzz.sources.sqlancer.source import SqLancer
from fuzz.sources.sqlsmith import SqlSmith
from fuzz.sources.typed.source import Typed
from fuzz.sources.workloads import SOURCES_SHARE, USER_SQL, cases_per_hour, default_workloads

_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git has it in each repository


@dataclass(frozen=True)
class _EmptyBase:
    """The context of a base without any file."""

    given: UserInput
    trees: tuple[str, ...] = (_EMPTY_TREE,)


def _of_empty_base(given: UserInput) -> SourceContext:
    return cast(SourceContext, _EmptyBase(given))


class _Heavy(Typed):
    """A source with three times the share."""

    name: ClassVar[str] = "heavy"
    default_weight: ClassVar[int] = 3
    cpu_seconds: ClassVar[float] = 0.5


def _time(workloads: list[Generator], cases: dict[str, int]) -> float:
    return sum(cases[each.name] * each.cpu_seconds for each in workloads)


@pytest.mark.parametrize("sources", [[Typed()], [Typed(), _Heavy(), SqlSmith(), Regress()]])
def test_sources_have_their_share_of_the_time(sources: list[Source]) -> None:
    generators = list(all_generators().values())
    cases = cases_per_hour(generators, sources)
    assert _time([*generators, *sources], cases) == pytest.approx(3600, rel=0.05)
    assert _time([*sources], cases) == pytest.approx(3600 * SOURCES_SHARE, rel=0.05)
    assert len({cases[each.name] for each in generators}) == 1


def test_sources_divide_their_time_by_weight() -> None:
    cases = cases_per_hour(all_generators().values(), [Typed(), _Heavy()])
    assert _time([_Heavy()], cases) == pytest.approx(3 * _time([Typed()], cases), rel=0.05)


def test_a_source_that_is_left_out_has_a_reason() -> None:
    workloads, left_out = default_workloads(_of_empty_base(UserInput(sqlancer_jar="/nowhere.jar")))
    assert left_out["regress"] == "the base has no src/test/regress; a full source tree has it"
    assert left_out["sqlancer"].startswith("there is no jar /nowhere.jar; PGDUEL_SQLANCER_JAR or --sqlancer-jar names")
    assert {*all_generators(), "qpg", "typed"} <= workloads.keys()
    assert not left_out.keys() & workloads.keys()
    assert not {USER_SQL} & (workloads.keys() | left_out.keys())


def test_the_users_sql_is_alone() -> None:
    assert default_workloads(_of_empty_base(UserInput("x.sql"))) == ({USER_SQL: 1}, {})


def test_without_patches_there_is_no_direction() -> None:
    target = _of_empty_base(UserInput())
    workloads, left_out = default_workloads(target)
    assert directed_workloads(target, ()) == (Direction(workloads), left_out)


@pytest.mark.servers
def test_all_that_can_run_is_part_of_a_run_without_options(arm: Arm) -> None:
    target = SourceDatabase(arm, "default", UserInput())
    workloads, left_out = default_workloads(target)
    target.close()
    expected = {*all_generators(), "qpg", "regress", "sqlsmith", "typed"}
    assert workloads.keys() - {SqLancer.name} == expected
    assert left_out.keys() <= {SqLancer.name}
