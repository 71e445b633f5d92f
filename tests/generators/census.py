"""A census of a generator's cases on a real server: successful statements, and executed plans."""

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

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
