"""A census of a generator's cases on a real server, successful statements and executed plans, and tests of it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from fuzz.campaign.reach import EXPLAINED, reach
from fuzz.engines.seeded import case_of
from fuzz.execution.executor import Executor
from fuzz.generators.generator import Scale
from oracles.model.case import CaseId, Kind, Step
from oracles.model.observation import Observation, Outcome, Run

SEED = 11


@dataclass
class Census:
    """Outcomes of the steps of many cases. Counters count statements, also by tag for joins in several batches."""

    steps: int = 0  # that must succeed
    queries: int = 0  # of these steps
    failed: list[str] = field(default_factory=list)  # of these steps
    counters: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(
        default_factory=Counter
    )  # SQLSTATEs of steps that may fail, and notices of caught errors

    def share(self, counter: str) -> float:
        return self.counters[counter] / self.counters[EXPLAINED]

    def count(self, index: int, step: Step, seen: Observation, families: Mapping[str, AbstractSet[str]]) -> None:
        self.steps += not step.may_fail
        self.queries += step.kind is Kind.QUERY and not step.may_fail
        self.errors.update(message.text.split("\n")[0] for message in seen.messages if message.severity == "NOTICE")
        if step.may_fail:
            self.errors[seen.sqlstate] += 1
        elif seen.outcome is not Outcome.OK:
            self.failed.append(f"{index}: {seen.sqlstate} {step.sql[:300]}")
        if seen.plan is not None:
            counters = set(reach(seen.plan))
            self.counters.update(counters)
            self.counters.update(name for name, family in families.items() if family & counters)
            self.counters.update(f"{tag}+multi_batch" for tag in step.tags if "hash_join.multi_batch" in counters)


def census_of(executor: Executor, generator: str, cases: int, families: Mapping[str, AbstractSet[str]]) -> Census:
    """Return the census of a number of cases. A family counts the statements with any of its counters."""
    census = Census()
    for index in range(cases):
        case = case_of(CaseId(SEED, generator, index), Scale())
        run = Run("only", case.modes, explain=True)
        observation = executor.observe(case, [run])[run]
        for step, seen in zip(case.all_steps, observation.steps, strict=True):
            census.count(index, step, seen, families)
    return census


class Reach:
    """Tests of the reach of a generator, by the fixture `census` of a subclass's file."""

    queries: ClassVar[int]  # least number in all cases
    failing: ClassVar[float] = 1 / 500  # of the steps that must succeed
    shares: ClassVar[Mapping[str, float]]  # of the statements that take a path, at least
    paths: ClassVar[Sequence[str]]  # that some statement takes

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "least" in metafunc.fixturenames:
            metafunc.parametrize(("counter", "least"), self.shares.items())
        elif "counter" in metafunc.fixturenames:
            metafunc.parametrize("counter", self.paths)

    def test_steps_succeed(self, census: Census) -> None:
        assert len(census.failed) <= census.steps * self.failing, census.failed

    def test_every_query_that_succeeded_is_counted(self, census: Census) -> None:
        assert census.counters[EXPLAINED] >= census.queries - len(census.failed)
        assert census.queries >= self.queries

    def test_enough_statements_take_the_path(self, census: Census, counter: str, least: float) -> None:
        assert census.share(counter) >= least, census.counters.most_common()

    def test_each_path_is_taken(self, census: Census, counter: str) -> None:
        assert census.counters[counter] > 0, census.counters.most_common()
