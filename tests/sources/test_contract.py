"""Tests of each source's contract, which is that of generators for a given target."""

import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path

import psycopg
import pytest

from fuzz.engines.seeded import case_of, draw_modes
from fuzz.errors import CaseError
from fuzz.execution.executor import Executor
from fuzz.execution.judging import assignments, judge_case
from fuzz.execution.modes import MODES
from fuzz.execution.source_database import SourceDatabase
from fuzz.generators.generator import Scale, all_generators
from fuzz.servers.arm import Arm
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from fuzz.sources.source import UNPARSED, Source, UserInput, all_sources
from fuzz.sources.sqlancer.source import SqLancer
from fuzz.sources.user_sql import UserSql
from fuzz.sources.workloads import USER_SQL, all_workloads, require_workload, workload_named
from oracles.framework.metamorphic import Metamorphic
from oracles.model.case import Case, CaseId, Kind, Step
from oracles.model.oracle import Agree, NotApplicable, all_oracles
from oracles.sql.parsing import MOST_LEVELS

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1200)]

SOURCES = all_sources()
CASES = 3
SEEDS = {"regress": 4}  # this seed's cases include a long file; 3 for other sources
SMALL, LARGE = Scale(rows=20, relations=2, partitions=2, queries=2), Scale(queries=8)
Generated = Callable[[Source, Scale], Sequence[Case]]


@pytest.fixture(autouse=True)
def _skip_missing(request: pytest.FixtureRequest, given: UserInput) -> None:
    """Skip SQLancer if its jar, which is not distributed, is missing."""
    source = request.node.callspec.params.get("source") if hasattr(request.node, "callspec") else None
    if isinstance(source, SqLancer) and (why := source.lacks(given)):
        pytest.skip(f"SQLancer: {why}")


each_source = pytest.mark.parametrize("source", SOURCES.values(), ids=list(SOURCES))


def case_number(index: int, source: Source, target: SourceDatabase, scale: Scale) -> Case:
    return case_of(CaseId(SEEDS.get(source.name, 3), source.name, index), scale, target)


def cases(source: Source, target: SourceDatabase, scale: Scale = LARGE) -> list[Case]:
    return [case_number(index, source, target, scale) for index in range(CASES)]


@pytest.fixture(scope="module")
def generated(target: SourceDatabase) -> Generated:
    """Return a function that generates the cases of a source and scale once, for all tests that only read them."""

    @cache
    def made(source: str, scale: Scale) -> tuple[Case, ...]:
        return tuple(cases(SOURCES[source], target, scale))

    return lambda source, scale: made(source.name, scale)


@pytest.fixture(scope="module")
def other_target(build: Build, given: UserInput) -> Iterator[SourceDatabase]:
    """Yield the source database of another server of the build."""
    with Cluster(build, "another") as cluster:
        _advance_numbers(cluster)
        with closing(SourceDatabase(Arm("other", build, cluster, (build.tree,)), "other", given)) as other_target:
            yield other_target


def test_names_of_generators_and_sources_are_distinct() -> None:
    assert not set(SOURCES) & set(all_generators())
    assert set(all_workloads()) == set(SOURCES) | set(all_generators())
    assert USER_SQL in SOURCES


@each_source
def test_missing_input_is_reported_in_one_line(source: Source, given: UserInput) -> None:
    assert "\n" not in source.lacks(UserInput())
    assert source.lacks(given) == ""
    assert require_workload(source.name, given) == source.name


def test_missing_input_is_an_error_before_anything_is_built() -> None:
    with pytest.raises(CaseError, match="cannot take statements from user_sql: give your SQL with --sql"):
        require_workload("user_sql", UserInput())


@each_source
def test_without_a_target_there_are_no_cases(source: Source) -> None:
    with pytest.raises(CaseError, match=f"{source.name} takes its statements for a running arm"):
        case_of(CaseId(1, source.name, 0), SMALL)


@each_source
def test_each_mode_of_a_source_is_drawn(source: Source) -> None:
    rng = random.Random(1)
    drawn = {mode.name for _ in range(500) for mode in draw_modes(rng, source)}
    assert drawn == {name for entry in source.modes for name in entry.split("+")}
    assert drawn <= set(MODES)


@each_source
def test_a_case_is_the_same_on_another_server_of_the_build(
    source: Source, target: SourceDatabase, other_target: SourceDatabase, generated: Generated
) -> None:
    first = list(generated(source, LARGE))
    assert cases(source, other_target) == first
    assert cases(source, target) == first
    assert len(set(first)) == CASES


def _advance_numbers(cluster: Cluster) -> None:
    """Advance the OIDs and transaction numbers of a new server."""
    with psycopg.connect(**cluster.connect_kwargs, autocommit=True) as connection:  # type: ignore[arg-type]
        for number in range(20):
            connection.execute(f"CREATE TABLE t{number} (a serial PRIMARY KEY, b text)")


@each_source
def test_only_the_given_randomness_is_used(source: Source, target: SourceDatabase) -> None:
    before = random.getstate()
    case_number(0, source, target, SMALL)
    assert random.getstate() == before


@each_source
def test_steps_match_their_kinds(source: Source, generated: Generated) -> None:
    for case in generated(source, LARGE):
        assert case.generator == source.name
        assert case.steps
        for step in case.all_steps:
            assert (step.copy_data is None) == (step.kind is not Kind.COPY_IN), step.sql
            assert not step.sql.rstrip().endswith(";"), step.sql
            assert not step.params


@each_source
def test_cases_can_be_sent_to_workers(source: Source, generated: Generated) -> None:
    assert pickle.loads(pickle.dumps(generated(source, LARGE))) == generated(source, LARGE)


@each_source
def test_scale_is_respected(source: Source, generated: Generated) -> None:
    small, large = (sum(len(case.steps) for case in generated(source, scale)) for scale in (SMALL, LARGE))
    assert 0 < small < large


@pytest.mark.parametrize("content", ["CREATE TABLE t (a int);", "BEGIN; COMMIT;", "SELECT pg_backend_pid();"])
def test_sql_without_a_query_is_refused_before_the_first_case(arm: Arm, tmp_path: Path, content: str) -> None:
    (tmp_path / "scene.sql").write_text(content)
    with (
        closing(SourceDatabase(arm, "queries", UserInput(str(tmp_path)))) as target,
        pytest.raises(CaseError, match=r"has no query to draw from; give scripts with SELECT, or recorded statements"),
    ):
        UserSql(target).remarks()


@pytest.mark.parametrize("content", ["SELECT * FROM nowhere;", "SELECT 5 + nothing; SELECT 'a' + 1;"])
def test_sql_whose_queries_all_fail_is_refused_before_the_first_case(arm: Arm, tmp_path: Path, content: str) -> None:
    (tmp_path / "queries.sql").write_text(content)
    with (
        closing(SourceDatabase(arm, "failing", UserInput(str(tmp_path)))) as target,
        pytest.raises(CaseError, match=r"none of its queries can be compared, or runs at all, .*; give the schema"),
    ):
        UserSql(target).remarks()


# The server accepts so many levels, as it accepts syntax that is newer than pglast's.
UNREADABLE = f"SELECT 1{' + 1' * MOST_LEVELS}"


def test_queries_that_pglast_cannot_parse_are_drawn_if_the_server_finds_them_determined(
    arm: Arm, tmp_path: Path
) -> None:
    recorded = (
        f"{UNREADABLE}, $1",
        f"{UNREADABLE} + random()",
        f"{UNREADABLE} FROM t LIMIT 1",
        "SELECT a FROM t QUALIFY a > 1",
    )
    (tmp_path / "recorded.csv").write_text("".join(f'"{sql}"\n' for sql in ("query", *recorded)))
    (tmp_path / "scene.sql").write_text("CREATE TABLE t (a int);")
    with closing(SourceDatabase(arm, "unparsed", UserInput(str(tmp_path)))) as target:
        source = UserSql(target)
        reason = "no valid SQL, or beyond pglast's grammar"
        assert source.remarks() == (f"left out: 3 of 4 queries of {tmp_path}, {reason}",)
        steps = source.generate(random.Random(1), LARGE).steps
    assert {(step.kind, step.tags, step.sql.partition(", '")[0]) for step in steps} == {
        (Kind.QUERY, (UNPARSED,), UNREADABLE)
    }


def test_a_script_that_pglast_cannot_parse_is_a_case(arm: Arm, tmp_path: Path) -> None:
    script = ["CREATE TABLE t (a int)", f"INSERT INTO t {UNREADABLE}", "DELETE FROM t", "CREATE NEWTHING n"]
    (tmp_path / "script.sql").write_text(";\n".join(script))
    with closing(SourceDatabase(arm, "script", UserInput(str(tmp_path)))) as target:
        source = UserSql(target)
        assert source.remarks() == ()
        case = source.generate(random.Random(1), SMALL)
    assert [step.sql for step in case.all_steps] == [*script, "RESET ALL"]
    assert (len(case.scene), [step.sql for step in case.steps if UNPARSED in step.tags]) == (1, script[1::2])


def test_no_query_is_derived_from_statements_that_pglast_cannot_parse(arm: Arm, executor: Executor) -> None:
    judging = assignments(all_oracles(), (arm,))
    queries = (Step(UNREADABLE, Kind.QUERY, tags=(UNPARSED,)), Step("SELECT a FROM t WHERE a > 1", Kind.QUERY))
    samples = tuple(sample.name for assigned in judging for sample in assigned.oracle.samples)
    before = Case("by_hand", (Step("CREATE TABLE t AS SELECT 1 AS a"),), queries, samples=samples)
    after = replace(before, scene=(*before.scene, Step(f"INSERT INTO t {UNREADABLE}", tags=(UNPARSED,))))
    deriving = {each.oracle.name for each in judging if isinstance(each.oracle, Metamorphic)}
    for case, agreed in ((before, Agree(1)), (after, NotApplicable())):
        judged = judge_case(executor, judging, case)
        verdicts = {verdict for name, verdict in judged.verdicts if name in deriving}
        assert verdicts <= {agreed, NotApplicable()}
        assert agreed in verdicts
        assert judged.statements == len(case.all_steps)


def test_a_query_of_a_script_that_pglast_cannot_parse_is_in_its_scene_and_drawn(arm: Arm, tmp_path: Path) -> None:
    (tmp_path / "script.sql").write_text(f"SELECT 2; {UNREADABLE}; SELECT 3;")
    with closing(SourceDatabase(arm, "query", UserInput(str(tmp_path)))) as target:
        cases = [UserSql(target).generate(random.Random(seed), LARGE) for seed in range(3)]
    assert all(UNREADABLE in [step.sql for step in case.scene] for case in cases)
    assert any(step == Step(UNREADABLE, Kind.QUERY, may_fail=True, tags=(UNPARSED,)) for step in cases[0].steps)


def test_files_that_a_script_includes_are_left_out_with_a_remark(arm: Arm, tmp_path: Path) -> None:
    (tmp_path / "queries.sql").write_text("\\ir tables.sql\nSELECT 1;\n")
    with closing(SourceDatabase(arm, "includes", UserInput(str(tmp_path)))) as target:
        (remark,) = UserSql(target).remarks()
    assert remark.startswith(f"left out: files that \\i or \\ir includes ({tmp_path}/queries.sql, line 1); ")


def test_a_schema_with_a_view_that_has_no_data_is_usable(arm: Arm, tmp_path: Path) -> None:
    """A dump of the schema alone leaves materialized views without data."""
    schema = "CREATE TABLE t (a int); CREATE MATERIALIZED VIEW empty AS SELECT a FROM t WITH NO DATA;"
    (tmp_path / "schema.sql").write_text(f"{schema} SELECT a FROM t;")
    with closing(SourceDatabase(arm, "schema", UserInput(str(tmp_path)))) as target:
        source = UserSql(target)
        assert source.remarks() == ()
        assert source.generate(random.Random(1), SMALL).steps


def test_a_query_that_changes_data_is_executed_once(arm: Arm, tmp_path: Path) -> None:
    """Oracles repeat and replace steps of kind QUERY. Later rows would differ with the number of executions."""
    change = "WITH gone AS (DELETE FROM t WHERE a = 1 RETURNING a) SELECT a FROM gone"
    (tmp_path / "schema.sql").write_text(f"CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2); {change};")
    (tmp_path / "recorded.csv").write_text(f'query\n"{change}"\n')
    with closing(SourceDatabase(arm, "changing", UserInput(str(tmp_path)))) as target:
        case = UserSql(target).generate(random.Random(1), SMALL)
    assert change in [step.sql for step in case.scene]
    assert {step.kind for step in case.steps} == {Kind.COMMAND}


def test_unknown_names_are_refused() -> None:
    with pytest.raises(CaseError, match=r"give one of aged_indexes, .*qpg, regress, .*, typed, user_sql"):
        workload_named("absent")
