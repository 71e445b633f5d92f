"""Tests of the reach of `merged_bounds` on a real server: successful statements, and joins of merged bounds."""

import re
from collections.abc import Iterator
from itertools import combinations

import pytest

from fuzz.campaign.reach import EXPLAINED
from fuzz.engines.seeded import case_of
from fuzz.execution.executor import Executor
from fuzz.generators.generator import Scale
from oracles.explain.nodes import Node, nodes_of
from oracles.model.case import Case, CaseId
from oracles.model.observation import Run
from tests.generators.census import SEED, Census

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASES = 60
_PARTITION = re.compile(r"(?:CREATE TABLE|ATTACH PARTITION) (r\d)_\d+ (?:PARTITION OF r\d )?(DEFAULT|FOR VALUES .*)$")
_LEAF = re.compile(r"(r\d)_\d+(_\d+)?$")


def bounds_of(case: Case) -> dict[str, frozenset[str]]:
    """Return the bounds of each table on its first level."""
    found = [match.groups() for step in case.scene if (match := _PARTITION.match(step.sql.split(" PARTITION BY")[0]))]
    found += [match.groups() for step in case.scene if (match := _PARTITION.search(step.sql)) and "ATTACH" in step.sql]
    return {table: frozenset(bound for name, bound in found if name == table) for table, _ in found}


def merged_joins(plan: Node, bounds: dict[str, frozenset[str]]) -> Iterator[str]:
    """Yield the properties of joins below an Append whose relations have different bounds."""
    for append in nodes_of(plan):
        if append["Node Type"] not in ("Append", "Merge Append"):
            continue
        for member in append.get("Plans", ()):
            joins = [node for node in nodes_of(member) if "Join Type" in node]
            leaves = [
                (node["Alias"], *match.groups())
                for node in nodes_of(member)
                if (match := _LEAF.match(node.get("Relation Name", "")))
            ]
            tables = sorted({table for _, table, _ in leaves})
            if not joins or all(bounds[a] == bounds[b] for a, b in combinations(tables, 2)):
                continue
            yield "merged"
            yield f"merged.{min(5, len({alias for alias, *_ in leaves}))}"
            yield from (f"merged.{node['Join Type'].lower()}" for node in joins)
            yield from (f"merged.below.{below['Join Type'].lower()}" for below in joins[1:])
            yield from ("merged.levels" for *_, deeper in leaves if deeper)
            yield from ("merged.aggregate" for node in nodes_of(member) if node["Node Type"] == "Aggregate")
            yield from ("merged.parameterized" for node in nodes_of(member) if "Index Cond" in node)


@pytest.fixture(scope="module")
def census(executor: Executor) -> Census:
    census = Census()
    for index in range(CASES):
        case = case_of(CaseId(SEED, "merged_bounds", index), Scale())
        run = Run("only", case.modes, explain=True)
        observation = executor.observe(case, [run])[run]
        for step, seen in zip(case.all_steps, observation.steps, strict=True):
            census.count(index, step, seen, {})
            if seen.plan is not None:
                census.counters.update(set(merged_joins(seen.plan.get("Plan", seen.plan), bounds_of(case))))
    return census


def test_statements_succeed(census: Census) -> None:
    assert len(census.failed) <= census.steps / 200, census.failed


@pytest.mark.parametrize(("counter", "least"), [("rows", 0.5), ("partitionwise_join", 0.2), ("merged", 0.15)])
def test_enough_statements_take_the_path(census: Census, counter: str, least: float) -> None:
    assert census.share(counter) >= least, census.counters.most_common()


@pytest.mark.parametrize(
    "counter",
    [
        *("merged.2", "merged.3", "merged.4", "merged.inner", "merged.left", "merged.full", "merged.semi"),
        *(f"merged.below.{kind}" for kind in ("inner", "left", "full", "semi", "anti")),
        *("merged.anti", "merged.levels", "merged.aggregate", "merged.parameterized"),
    ],
)
def test_each_path_is_taken(census: Census, counter: str) -> None:
    assert census.counters[counter] >= census.counters[EXPLAINED] / 500, census.counters.most_common()
