"""Tests of the reach of `foreign_analyze` on a real server: successful statements, and requested samples."""

from collections import Counter
from dataclasses import dataclass, field

import pytest

from fuzz.engines.seeded import case_of
from fuzz.execution.executor import Executor
from fuzz.generators.generator import Scale
from oracles.model.case import CaseId
from oracles.model.observation import Outcome
from oracles.statistics.analyze import requested_samples, statements
from oracles.statistics.oracle import Statistics, analyses, law_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

CASES = 60


@dataclass
class Census:
    """Outcomes of the steps of many cases, in the oracle's own runs."""

    steps: int = 0
    failed: list[str] = field(default_factory=list)
    tags: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)  # samples, by their form
    analyses: Counter[str] = field(default_factory=Counter)


@pytest.fixture(scope="module")
def census(executor: Executor) -> Census:
    census = Census()
    for index in range(CASES):
        case = case_of(CaseId(11, "foreign_analyze", index), Scale())
        (run,) = Statistics().own_runs(case, ("only",))
        observed = executor.observe(case, [run])[run]
        for step, seen in zip(case.all_steps, observed.steps, strict=True):
            census.steps += 1
            census.failed += [] if seen.outcome is Outcome.OK else [f"{index}: {seen.sqlstate} {step.sql[:200]}"]
            census.tags.update(step.tags if seen.outcome is Outcome.OK else ())
        for _, lines in statements(observed):
            census.requests.update(
                request.tablesample or ("everything" if request.everything else "random")
                for request in requested_samples(lines)
            )
        for found in (analyses(case, observed) or {}).values():
            law = law_of(found)
            census.analyses["all"] += 1
            census.analyses["sampled"] += sum(each.kept for each in found.table_samples) < found.rows
            census.analyses[type(law).__name__] += 1
            census.analyses["current"] += found.current
    return census


def test_steps_succeed(census: Census) -> None:
    assert len(census.failed) <= census.steps / 500, census.failed


def test_enough_tables_are_analyzed_and_sampled(census: Census) -> None:
    found = census.analyses
    assert found["all"] >= CASES * 4, found
    assert found["sampled"] >= found["all"] * 0.4, found
    assert found["current"] >= found["all"] * 0.15, found
    assert found["RowByRow"] >= found["all"] * 0.5, found
    assert found["NoneType"] <= found["all"] * 0.1, found
    assert found["Blockwise"] > 0
    assert found["Tablewise"] > 0


@pytest.mark.parametrize("form", ["everything", "random", "SYSTEM", "BERNOULLI"])
def test_each_form_of_sample_is_requested(census: Census, form: str) -> None:
    assert census.requests[form] > 0, census.requests


@pytest.mark.parametrize(
    "tag",
    [
        *("remote.table", "remote.partitioned", "remote.inherited"),
        *("remote.materialized", "remote.view", "remote.foreign"),
        *("method.off", "method.random", "method.system", "method.bernoulli", "method.auto"),
        *("remote.pages without rows", "remote.pages with unknown rows", "remote.rows without pages"),
        *("remote.stale", "counters lost", "remote.changed", "dead rows", "counted", "in transaction", "target.column"),
        "foreign child",
        *("error.privilege", "error.missing", "error.row", "cancel"),
        *("local.table", "local.index_target", "local.extended_target", "local.distinct_inherited"),
        *("local.columns", "local.view", "local.elsewhere", "local.guest"),
        *("local.file", "local.file_child", "local.file_partition"),
        *("local.own_type", "local.sparse", "local.toast", "local.locked"),
    ],
)
def test_each_path_is_taken(census: Census, tag: str) -> None:
    assert census.tags[tag] > 0, census.tags.most_common()
