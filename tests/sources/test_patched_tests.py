"""Tests of cases from the tests that a patch adds or changes, on master and the patched server."""

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from fuzz.execution.executor import Executor
from fuzz.execution.judging import assignments, judge_case
from fuzz.execution.source_database import SourceDatabase
from fuzz.generators.generator import Scale
from fuzz.servers.arm import Arm, open_arms, parse_arm
from fuzz.servers.base import Base
from fuzz.servers.flavor import FLAVORS
from fuzz.sources.context import UserInput
from fuzz.sources.regress import Regress
from fuzz.sources.scripts.refused import Refusals, comparable, refusals
from oracles.crash import Crash
from oracles.internal_error import InternalError
from oracles.model.case import Case, Kind, Step
from oracles.model.observation import Outcome, Run
from oracles.model.oracle import Agree
from oracles.result import Result

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

_CHANGED = ("hashjoin_bloom", "join_hash", "partition_join")
_SETTING = "SHOW enable_hashjoin_bloom"
_SCRIPT = (
    "CREATE TABLE t AS SELECT 1 AS a",
    "BEGIN",
    "SET LOCAL enable_hashjoin_bloom = off",
    "SELECT a, missing FROM t",  # ends the transaction on both arms
    "SET LOCAL debug_force_hashjoin_bloom = on",
    "COMMIT",
    "SET enable_hashjoin_bloom TO off",
    "ALTER SERVER loopback OPTIONS (ADD analyze_sampling 'off')",
    "ALTER SERVER loopback OPTIONS (DROP analyze_sampling)",
    "SET enable_hashjoin_bloom = 'maybe'",
    "SET work_mem = 'much'",  # refused by both
    "SELECT count(*) FROM t",
)


@pytest.fixture(scope="module")
def arms(base: Base) -> Iterator[tuple[Arm, ...]]:
    with open_arms([parse_arm(name, base, FLAVORS["assert"], print) for name in ("master", "patched")], print) as arms:
        yield arms


@pytest.fixture(scope="module")
def target(arms: tuple[Arm, ...]) -> Iterator[SourceDatabase]:
    with closing(SourceDatabase(arms[0], "own", UserInput(), arms[1:])) as target:
        yield target


@pytest.fixture(scope="module")
def executor(arms: tuple[Arm, ...]) -> Iterator[Executor]:
    with Executor(arms, "patched") as executor:
        yield executor


def _script(*sql: str) -> Case:
    queries = ("SELECT", "SHOW")
    steps = (Step(each, Kind.QUERY if each.startswith(queries) else Kind.COMMAND, may_fail=True) for each in sql)
    return Case("by_hand", (), tuple(steps))


def test_tests_that_patches_change_come_first(target: SourceDatabase, arms: tuple[Arm, ...]) -> None:
    expected = {f"patched:src/test/regress/{test}" for test in _CHANGED} | {"patched:contrib/postgres_fdw/postgres_fdw"}
    assert set(Regress(target).first_parts()) == expected
    with closing(SourceDatabase(arms[1], "alone", UserInput())) as alone:
        assert set(Regress(alone).first_parts()) == expected
    with closing(SourceDatabase(arms[0], "same", UserInput(), arms[:1])) as same:
        assert Regress(same).first_parts() == ()


def test_statements_that_only_the_patch_knows_leave_the_same_state(target: SourceDatabase, executor: Executor) -> None:
    case = _script(*_SCRIPT)
    refused = refusals(case, lambda tried: target.tried(tried, "patched"))
    assert {position: each.reference for position, each in refused.statements.items()} == {
        2: "42704",
        6: "42704",
        7: "HV00D",
        8: "42704",
        9: "42704",
    }
    equal = comparable(case, refused)
    assert [step for step in equal.steps if not step.tags] == [
        step for position, step in enumerate(case.steps) if position not in refused.statements
    ]
    assert all(each.reference == each.suspect for each in target.tried(equal, "patched"))

    known = comparable(_script(*_SCRIPT[:7], _SETTING), replace(refused, statements={6: refused.statements[6]}))
    seen = executor.observe(known, [Run("patched", ())])[Run("patched", ())].steps[7]
    assert (seen.outcome, seen.rows[0].endswith(b"off")) == (Outcome.OK, True)


def test_a_case_ends_with_a_statement_that_does_not_end(target: SourceDatabase) -> None:
    case = _script("SELECT 1", "SELECT pg_terminate_backend(pg_backend_pid())", "SET enable_hashjoin_bloom = off")
    refused = refusals(case, lambda tried: target.tried(tried, "patched"))
    assert refused == Refusals({}, 2)
    assert comparable(case, refused).steps == case.steps[:2]


def test_a_test_that_a_patch_adds_shows_no_difference(
    target: SourceDatabase, executor: Executor, arms: tuple[Arm, ...]
) -> None:
    case = Regress(target).replay("patched:src/test/regress/hashjoin_bloom", random.Random(1), Scale())
    assert case.part == "patched:src/test/regress/hashjoin_bloom"
    assert sum(bool(step.tags) for step in case.all_steps) > 3
    judged = judge_case(executor, assignments((Result(), Crash(), InternalError()), arms), case)
    assert judged.findings == ()
    compared = [each.statements for oracle, each in judged.verdicts if oracle == "result" and isinstance(each, Agree)]
    assert sum(compared) > len(case.all_steps) // 2
