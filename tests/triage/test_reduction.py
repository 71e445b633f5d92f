"""Tests of reduction on a real server: the large case of a bug becomes a few statements, which replay."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from random import Random

import pytest

from fuzz.campaign.canaries import FaultyExecutor
from fuzz.engines.seeded import case_of
from fuzz.execution.executor import Executor
from fuzz.execution.judging import judge_case
from fuzz.execution.modes import MODES
from fuzz.generators.generator import Scale
from fuzz.servers.arm import Arm
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from fuzz.servers.modules import FAULT_INJECTOR, ensure_module
from fuzz.triage.reduction.reducer import Uninteresting, reduce
from fuzz.triage.reproducer.reproducer import parse, render
from oracles.model.case import Case, CaseId, Kind, Step
from oracles.model.finding import Finding
from oracles.result import Result
from tests.oracles.observed import assigned

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

NAMES = ("sound", "faulty")
SECONDS = 90
FLOCK = (
    Step("CREATE TABLE flock (n int, name text)"),
    Step("INSERT INTO flock VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')"),
    Step("CREATE VIEW canary AS TABLE flock"),
)
COPY = Step("COPY flock FROM STDIN", Kind.COPY_IN, b"5\te\n6\tf\n7\tg\n")
QUERY = Step("SELECT * FROM canary WHERE n > 2", Kind.QUERY)


@pytest.fixture(scope="module")
def executor(build: Build) -> Iterator[Executor]:
    ensure_module(build, FAULT_INJECTOR)
    with ExitStack() as stack:
        arms = [Arm(name, build, stack.enter_context(Cluster(build, name)), ()) for name in NAMES]
        yield stack.enter_context(Executor(arms))


def large_case() -> Case:
    """Return a generated case with additional statements about the canary."""
    case = case_of(CaseId(5, "partitioned_joins", 1), Scale(rows=40, queries=20))
    middle = len(case.steps) // 2
    steps = (*case.steps[:middle], COPY, QUERY, *case.steps[middle:])
    return replace(case, scene=FLOCK + case.scene, steps=steps, modes=(MODES["merge_only"], MODES["cursor"]))


def found_in(executor: Executor, case: Case, fault: str = "drop_row") -> Finding | None:
    findings = judge_case(FaultyExecutor(executor, NAMES[1], fault), assigned((Result(),), NAMES), case).findings
    return findings[0] if findings else None


def test_a_large_case_is_reduced_to_what_matters(executor: Executor) -> None:
    case = large_case()
    first = found_in(executor, case)
    assert first is not None
    better: list[Case] = []

    def shows_it(tried: Case) -> bool:
        found = found_in(executor, tried)
        return found is not None and found.resembles(first)

    small = reduce(case, shows_it, seconds=SECONDS, replay="", on_better=better.append).case
    assert len(case.all_steps) > 20
    assert len(small.all_steps) <= len(("CREATE TABLE", "INSERT or COPY", "CREATE VIEW", "SELECT"))
    assert small.modes == ()
    assert "), (" not in "".join(step.sql for step in small.all_steps)
    assert all((step.copy_data or b"").count(b"\n") <= 1 for step in small.all_steps)
    assert better[-1] == small

    finding = found_in(executor, small)
    assert finding is not None
    script = render(small, finding, {}, "5/partitioned_joins/1", "./pgduel replay FILE")
    again = found_in(executor, parse(script))
    assert again == finding
    assert judge_case(executor, assigned((Result(),), NAMES), parse(script)).findings == ()


@pytest.mark.long
def test_a_finding_that_occurs_in_half_of_the_tries_is_reduced(executor: Executor) -> None:
    case = large_case()
    first = found_in(executor, case)
    assert first is not None
    rng = Random(1)

    def shows_it(tried: Case) -> bool:
        found = found_in(executor, tried) if rng.random() < 0.5 else None
        return found is not None and found.resembles(first)

    small = reduce(case, shows_it, seconds=SECONDS / 2, replay="")
    again = found_in(executor, small.case)
    assert again is not None
    assert again.resembles(first)
    assert 0 < small.occurrence.shown < small.occurrence.runs
    assert len(small.case.all_steps) < len(case.all_steps) / 2  # to the end on an idle machine


def test_a_case_without_the_finding_is_refused(executor: Executor) -> None:
    with pytest.raises(Uninteresting, match="1/g/2"):
        reduce(Case("g", FLOCK, (QUERY,)), lambda case: found_in(executor, case, "drop_row:elsewhere") is not None,
               seconds=SECONDS, replay="./pgduel replay 1/g/2")  # fmt: skip
