"""Tests of the reach of sources on a real server: successful statements, and statements with rows."""

import random
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field

import pytest

from fuzz.engines.seeded import case_of
from fuzz.execution.executor import Executor
from fuzz.execution.source_database import SourceDatabase
from fuzz.generators.generator import Scale
from fuzz.servers.arm import Arm
from fuzz.sources.qpg import MUTATIONS
from fuzz.sources.regress import REGRESS, Regress, suites
from fuzz.sources.source import UserInput
from fuzz.sources.sqlancer.source import SqLancer
from oracles.model.case import Case, CaseId, Kind
from oracles.model.observation import CaseObservation, Outcome, Run

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1200)]


@dataclass
class Census:
    """Outcomes of the steps of some cases."""

    outcomes: Counter[str] = field(default_factory=Counter)
    with_rows: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    def count(self, case: Case, seen: CaseObservation) -> None:
        for step, each in list(zip(case.all_steps, seen.steps, strict=True))[len(case.scene) :]:
            self.outcomes[each.outcome] += 1
            self.with_rows += bool(each.rows)
            self.kinds.update(step.tags)

    @property
    def succeeded(self) -> float:
        return self.outcomes[Outcome.OK] / self.outcomes.total()


def observed(executor: Executor, case: Case) -> CaseObservation:
    run = Run("only", case.modes)
    return executor.observe(case, [run])[run]


def census_of(executor: Executor, target: SourceDatabase, source: str, cases: int) -> Census:
    census = Census()
    for index in range(cases):
        case = case_of(CaseId(11, source, index), Scale(), target)
        census.count(case, observed(executor, case))
    return census


def test_sqlsmiths_statements_succeed_and_return_rows(executor: Executor, target: SourceDatabase) -> None:
    census = census_of(executor, target, "sqlsmith", 12)
    assert census.outcomes.total() >= 12 * 20, census
    assert census.succeeded >= 0.70, census
    assert census.with_rows >= 0.10 * census.outcomes.total(), census
    assert {"select", "insert", "update", "delete"} <= set(census.kinds), census


def test_a_users_statements_succeed_and_return_rows(executor: Executor, target: SourceDatabase) -> None:
    census = census_of(executor, target, "user_sql", 6)
    assert census.outcomes.total() == 6 * 30
    assert census.succeeded >= 0.90, census
    assert census.with_rows >= 0.50 * census.outcomes.total(), census


def test_guided_queries_succeed_over_scenes_that_were_mutated(executor: Executor, target: SourceDatabase) -> None:
    census = census_of(executor, target, "qpg", 6)
    assert census.succeeded >= 0.85, census
    assert set(census.kinds) & set(MUTATIONS), census


CONSTRUCTS = (
    *("rows", "distinct", "distinct on", "grouped", "grouping sets", "total", "window", "set operation", "recursive"),
    *("with", "with materialized", "insert", "update", "delete", "merge", "change in with", "index"),
)
WORDS = (
    *("FILTER (WHERE", "WITHIN GROUP", "LATERAL (", "EXISTS (SELECT", "IN (SELECT", "ON CONFLICT", "RETURNING"),
    *("COLLATE", "JSON_TABLE", "JSON_VALUE", "IS JSON", "::mood", "::natural_number", "::pair", "::nested", "span("),
    *("multirange(", "daterange(", "EXTRACT(", "AT TIME ZONE", "NaN", "Infinity", "::inet", "::uuid", "::bytea"),
    *("::varbit", "ARRAY[", "JOIN", "WITH TIES", "ROLLUP", "WITH ORDINALITY", "VALUES (", "NOT MATCHED BY SOURCE"),
    *("EXCLUDE", "CASE "),
)


def test_typed_statements_succeed_and_have_all_constructs(executor: Executor, target: SourceDatabase) -> None:
    census, sql = Census(), ""
    for index in range(30):
        case = case_of(CaseId(11, "typed", index), Scale(), target)
        census.count(case, observed(executor, case))
        sql += "\n".join(step.sql for step in case.steps)
    assert census.outcomes.total() == 30 * 30
    assert census.succeeded >= 0.90, census
    assert census.with_rows >= 0.45 * census.outcomes.total(), census
    assert [tag for tag in CONSTRUCTS if not census.kinds[tag]] == [], census
    assert [word for word in WORDS if word not in sql] == []


def test_sqlancers_queries_succeed(executor: Executor, target: SourceDatabase, given: UserInput) -> None:
    if why := SqLancer.lacks(given):
        pytest.skip(f"SQLancer: {why}")
    census = census_of(executor, target, "sqlancer", 3)
    assert census.succeeded >= 0.60, census


# Numbers of errors: expected ones, and those caused by omitted statements, roles and psql variables.
FILES = {"int4": 34, "join_hash": 0, "partition_prune": 2, "aggregates": 31, "copy2": 84, "portals": 17, "limit": 3}


@pytest.fixture(scope="module")
def regress(arm: Arm) -> dict[str, Case]:
    """Return the cases of some files."""
    with closing(SourceDatabase(arm, "reach", UserInput())) as target:
        source = Regress(target)
        return {test: source.replay(f"{REGRESS}/{test}", random.Random(1), Scale()) for test in FILES}


@pytest.mark.parametrize("test", FILES)
def test_postgresqls_tests_have_the_expected_number_of_errors(
    executor: Executor, regress: dict[str, Case], test: str
) -> None:
    case = regress[test]
    seen = observed(executor, case)
    failed = [
        f"{step.sql[:100]}: {each.sqlstate} {each.messages[-1:]}"
        for step, each in zip(case.all_steps, seen.steps, strict=True)
        if each.outcome is not Outcome.OK
    ]
    assert len(failed) <= FILES[test], failed
    assert sum(step.kind is Kind.QUERY for step in case.steps) > 5


def test_all_of_postgresqls_tests_are_parts(target: SourceDatabase) -> None:
    core, *contrib = suites(target.trees[0])
    assert core.directory == REGRESS
    assert len(core.tests) > 220
    assert core.tests["int4"] == ("test_setup",)
    assert {"test_setup", "create_view", "create_index"} <= set(core.tests["select_views"])
    assert {"contrib/btree_gin", "contrib/citext", "contrib/hstore"} <= {suite.directory for suite in contrib}
    parts = Regress(target).parts()
    assert {f"{REGRESS}/{test}" for test in core.tests} | {"contrib/hstore/hstore"} <= set(parts)
    assert not any(part.startswith("contrib/uuid-ossp/") for part in parts)  # its library is not built
