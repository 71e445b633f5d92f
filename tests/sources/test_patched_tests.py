"""Tests of cases from the tests that patches add or change: their parts, and statements that other arms lack."""

import random
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from fuzz.execution.executor import Executor
from fuzz.execution.judging import assignments, judge_case
from fuzz.execution.source_database import SourceDatabase
from fuzz.generators.generator import Scale
from fuzz.servers import git
from fuzz.servers.arm import Arm, open_arms, parse_arm
from fuzz.servers.base import Base
from fuzz.servers.flavor import FLAVORS
from fuzz.sources.regress import CHUNK, REGRESS, Regress, own_chunks, set_up
from fuzz.sources.scripts.trial import LACKING, Trial, tried
from fuzz.sources.source import UserInput
from oracles.crash import Crash
from oracles.internal_error import InternalError
from oracles.model.case import Case, Kind, Step
from oracles.model.oracle import Agree, Inconclusive
from oracles.result import Result

_OLD = [f"SELECT {number};" for number in range(3 * CHUNK)]


def tree_of(directory: Path, **tests: str) -> str:
    """Return the tree of a suite with these tests."""
    (directory / REGRESS / "sql").mkdir(parents=True, exist_ok=True)
    schedule = "".join(f"test: {name}\n" for name in tests if name != "unscheduled")
    (directory / REGRESS / "parallel_schedule").write_text(schedule)
    for name, text in tests.items():
        (directory / REGRESS / "sql" / f"{name}.sql").write_text(text)
    return git.import_directory(directory)


def test_chunks_with_a_new_statement_are_the_tests_of_a_patch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path / "home"))
    old = "\n".join(_OLD)
    changed = "\n".join([*_OLD[:CHUNK], "SELECT 'new';", *_OLD[CHUNK:]])
    fewer = "\n".join(_OLD[:-1])
    base = tree_of(tmp_path / "base", test_setup="", same=old, changed=old, fewer=old)
    other = tree_of(tmp_path / "other", test_setup="", same=old, changed=old, fewer=old, known="SELECT 1;")
    patched = tree_of(
        tmp_path / "patched",
        **{"test_setup": "", "same": old, "changed": changed, "fewer": fewer, "known": "SELECT 1;"},
        added="SELECT 'added';",
        unscheduled="SELECT 'never';",
    )
    found = [(test, number) for _, test, number in own_chunks(patched, (base, other))]
    assert found == [("changed", 1), ("added", 0)]
    assert [test for _, test, _ in own_chunks(patched, (base,))] == ["changed", "known", "added"]


def test_a_chunk_has_what_it_needs_of_the_statements_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path / "home"))
    before = ["CREATE TABLE t (a int)", "CREATE TABLE u (a int)", "SET work_mem = '1MB'", "SET LOCAL work_mem = '2MB'"]
    text = ";\n".join([*before, *["SELECT 1"] * (CHUNK - len(before)), "SELECT a FROM t"])
    tree = tree_of(tmp_path / "patched", test_setup="", added=f"{text};")
    ((suite, test, last),) = [each for each in own_chunks(tree, (tree_of(tmp_path / "base"),)) if each[2]]
    part = slice(last * CHUNK, (last + 1) * CHUNK)
    assert [each.sql for each in set_up(tree, suite, test, part)] == [before[0], before[2]]


@pytest.fixture(scope="module")
def arms(base: Base) -> Iterator[tuple[Arm, ...]]:
    with open_arms([parse_arm(name, base, FLAVORS["assert"], print) for name in ("master", "patched")], print) as arms:
        yield arms


@pytest.fixture(scope="module")
def target(arms: tuple[Arm, ...]) -> Iterator[SourceDatabase]:
    with closing(SourceDatabase(arms[0], "own", UserInput(), arms)) as target:
        yield target


@pytest.fixture(scope="module")
def executor(arms: tuple[Arm, ...]) -> Iterator[Executor]:
    with Executor(arms, "patched") as executor:
        yield executor


def script(*sql: str) -> Case:
    queries = ("SELECT", "SHOW")
    steps = (Step(each, Kind.QUERY if each.startswith(queries) else Kind.COMMAND, may_fail=True) for each in sql)
    return Case("by_hand", (), tuple(steps))


def trial_of(target: SourceDatabase, case: Case) -> Trial:
    with ExitStack() as stack:
        master, patched = [stack.enter_context(each.session(())) for each in target.arms]
        return tried(patched, [master], case.all_steps)


# Statements, each with whether master lacks its feature.
SCRIPT = {
    "CREATE TABLE t AS SELECT 1 AS a": False,
    "BEGIN": False,
    "SET LOCAL enable_hashjoin_bloom = off": True,
    "SELECT a FROM t": False,
    "SAVEPOINT s": False,
    "SET LOCAL debug_force_hashjoin_bloom = on": True,
    "SELECT a, missing FROM t": False,  # both refuse it
    "ROLLBACK TO s": False,
    "INSERT INTO t VALUES (2)": False,
    "COMMIT": False,
    "SHOW enable_hashjoin_bloom": True,
    "CREATE EXTENSION postgres_fdw": False,
    "CREATE SERVER loopback FOREIGN DATA WRAPPER postgres_fdw": False,
    "ALTER SERVER loopback OPTIONS (ADD analyze_sampling 'off')": True,
    "CREATE TABLE u AS SELECT current_setting('enable_hashjoin_bloom') AS x": True,
    "SELECT x FROM u": False,
    "DROP TABLE IF EXISTS u": False,
    "SELECT no_function(a) FROM t": False,
    "SET work_mem = 'much'": False,
    "RESET ALL": False,
    "SELECT count(*) FROM t": False,
}


@pytest.mark.servers
@pytest.mark.timeout(900)
def test_statements_whose_feature_an_arm_lacks_run_nowhere(
    target: SourceDatabase, executor: Executor, arms: tuple[Arm, ...]
) -> None:
    case = script(*SCRIPT)
    trial = trial_of(target, case)
    assert [sql for position, sql in enumerate(SCRIPT) if position in trial.lacking] == [
        sql for sql, lacking in SCRIPT.items() if lacking
    ]
    applied = trial.applied(case)
    assert [step.sql for step in applied.steps if LACKING not in step.tags] == [
        sql for sql, lacking in SCRIPT.items() if not lacking
    ]
    judged = judge_case(executor, assignments((Result(),), arms), applied)
    assert [verdict for _, verdict in judged.verdicts] == [Agree(len(SCRIPT))]


@pytest.mark.servers
@pytest.mark.timeout(900)
def test_a_case_ends_before_a_statement_that_reaches_the_time_limit(target: SourceDatabase) -> None:
    case = script("SELECT 1", "RESET ALL", "SELECT pg_sleep(60)", "SET enable_hashjoin_bloom = off")
    trial = trial_of(target, case)
    assert trial == Trial(frozenset(), 2)
    assert trial.applied(case).steps == case.steps[:2]


@pytest.mark.servers
@pytest.mark.timeout(900)
def test_the_tests_of_the_shipped_patches_come_first(target: SourceDatabase, arms: tuple[Arm, ...]) -> None:
    parts = Regress(target).first_parts()
    tests = {part.partition(",")[0] for part in parts}
    own = {f"patched:{REGRESS}/{test}" for test in ("hashjoin_bloom", "join_hash", "partition_join")}
    assert own <= tests <= own | {"patched:contrib/postgres_fdw/postgres_fdw"}
    with closing(SourceDatabase(arms[1], "alone", UserInput(), arms[1:])) as alone:
        assert set(Regress(alone).first_parts()) >= set(parts)
    with closing(SourceDatabase(arms[0], "without", UserInput())) as without:
        assert Regress(without).first_parts() == ()


@pytest.mark.servers
@pytest.mark.timeout(900)
def test_tests_of_patches_show_no_difference(target: SourceDatabase, executor: Executor, arms: tuple[Arm, ...]) -> None:
    parts = [part for part in Regress(target).first_parts() if "hashjoin_bloom" in part or "postgres_fdw" in part]
    cases = [Regress(target).replay(part, random.Random(1), Scale()) for part in parts]
    assert any(LACKING in step.tags for case in cases for step in case.all_steps)
    for case in cases:
        judged = judge_case(executor, assignments((Result(), Crash(), InternalError()), arms), case)
        verdicts = [verdict for oracle, verdict in judged.verdicts if oracle == "result"]
        assert (judged.findings, [each for each in verdicts if isinstance(each, Inconclusive)]) == ((), [])
        assert sum(each.statements for each in verdicts if isinstance(each, Agree)) == len(case.all_steps)
