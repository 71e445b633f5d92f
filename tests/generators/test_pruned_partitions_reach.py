"""Tests of the reach of `pruned_partitions` on a real server: successful statements, and pruning at each stage."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from fuzz.engines.seeded import case_of
from fuzz.execution.executor import Executor
from fuzz.generators.generator import Scale
from oracles.model.case import CaseId, Step
from oracles.model.observation import Run
from tests.generators.census import SEED, Census, Reach

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASES = 300


class PruningCensus(Census):
    """A census that also counts the stages and nodes of pruning."""

    def count_pruning(self, plan: Mapping[str, Any]) -> None:
        self.counters.update(set(_pruning(plan.get("Plan", plan), "")))


def _pruning(node: Mapping[str, Any], above: str) -> Iterator[str]:
    """Yield the stage of pruning at each node that appends partitions, and the node above that rescans it."""
    children = node.get("Plans", ())
    kind = node["Node Type"]
    if kind in ("Append", "Merge Append"):
        members = [child for child in children if child["Parent Relationship"] == "Member"]
        if node.get("Subplans Removed", 0) > 0:
            yield f"at start: {kind}"
        if node.get("Actual Loops", 0) and any(not member.get("Actual Loops", 0) for member in members):
            yield f"at scan: {kind}"
            yield f"below {above}: {kind}"
            if _outer_rows(members) >= {"i", "o"} and sum(map(_returns, members)) > 1:
                yield "by two outer rows"
        if node.get("Parallel Aware"):
            yield f"parallel: {kind}"
    for child in children:
        yield from _pruning(child, kind)


def _outer_rows(members: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the aliases of outer rows in conditions of the members and of nodes below."""
    return set(re.findall(r"\b([io])\.k\d", json.dumps(members)))


def _returns(node: Mapping[str, Any]) -> bool:
    return bool(node.get("Actual Rows", 0))


@pytest.fixture(scope="module")
def census(executor: Executor) -> PruningCensus:
    census = PruningCensus()
    for index in range(CASES):
        case = case_of(CaseId(SEED, "pruned_partitions", index), Scale())
        run = Run("only", case.modes, explain=True)
        observation = executor.observe(case, [run])[run]
        for step, seen in zip(case.all_steps, observation.steps, strict=True):
            census.count(index, step, seen, {})
            if step.may_fail:
                census.counters[f"{step.tags[0]} {seen.sqlstate or 'succeeds'}"] += 1
            if seen.plan is not None:
                census.count_pruning(seen.plan)
                if "sorted" in step.tags and _merges_lists(seen.plan, case.scene):
                    census.counters["merged lists without default"] += 1
    return census


def _merges_lists(plan: Mapping[str, Any], scene: Sequence[Step]) -> bool:
    """Return whether a plan begins with a Merge Append of a table with lists, whose default partition is pruned."""
    node = plan.get("Plan", plan)
    node = node["Plans"][0] if node["Node Type"] == "Limit" else node
    if node["Node Type"] != "Merge Append" or node.get("Subplans Removed"):
        return False
    scanned = set(re.findall(r'"Relation Name": "(\w+)"', json.dumps(node)))
    table = min(scanned)[0]
    bounds = [step.sql for step in scene if re.search(rf"(PARTITION OF|ALTER TABLE) {table} ", step.sql)]
    defaults = [re.findall(rf"{table}_\d+", sql)[0] for sql in bounds if "DEFAULT" in sql]
    lists = any("FOR VALUES IN" in sql for sql in bounds)
    return lists and bool(defaults) and not any(name.startswith(defaults[0]) for name in scanned)


class TestReach(Reach):
    queries = CASES * 10
    failing = 1 / 1000
    shares: ClassVar = {
        "rows": 0.7,
        "append.live>=2": 0.5,
        "runtime_pruning": 0.1,
        "at start: Append": 0.03,
        "at scan: Append": 0.06,
        "nested_loop": 0.15,
        "index_scan": 0.1,
        "initplan": 0.15,
        "subplan": 0.03,
        "memoize.hits": 0.02,
        "by two outer rows": 0.01,
        "merged lists without default": 0.005,
    }
    paths = (
        *("at start: Merge Append", "at scan: Merge Append", "below Nested Loop: Append", "below Memoize: Append"),
        *("parallel: Append", "merge_append", "partitionwise_join", "incremental_sort", "row_locks", "bitmap_scan"),
        *(
            "moved succeeds",
            "moved 23514",
            "constraint 23514",
            "fits succeeds",
            "fits 23514",
            "added 42P17",
            "attached 42P17",
        ),
    )
