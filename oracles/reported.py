"""Reported: two queries that have equal rows according to another fuzzer's oracle have equal rows here, too.

A report becomes a case, in which a query names the reason for its equality with the step before (`Step.same_rows`).
Nothing else is taken from the report.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar, Final

from oracles.framework.canaries import canary_case, query
from oracles.framework.metamorphic import Metamorphic
from oracles.framework.relations import ArmRuns, MetamorphicRelation
from oracles.model.case import Case, SameRows, Step
from oracles.model.oracle import Canary, Sample

REPORTED: Final = Sample("reported", 1)  # cases of other sources have no step to judge


class Reported(Metamorphic):
    """Queries that should return the same rows according to another fuzzer, but differ."""

    name: ClassVar[str] = "reported"
    samples: ClassVar[tuple[Sample, ...]] = (REPORTED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary(
            "drop_row",
            canary_case(
                query("SELECT n FROM flock"),
                replace(query("SELECT n FROM canary"), same_rows=SameRows.BY_MEANING),
            ),
        ),
    )

    def relations(self, arm_runs: ArmRuns) -> Iterator[MetamorphicRelation]:
        """Yield the reported relations, except of queries that return floating-point numbers."""
        steps = arm_runs.case.all_steps
        reported = [position for position, step in enumerate(steps) if step.same_rows]
        if reported:
            exact = arm_runs.exact_queries()
            pairs = {each: (steps[each - 1].sql, exact[each]) for each in reported if {each - 1, each} <= exact.keys()}
            yield from arm_runs.relations(pairs, "queries reported as equivalent differ")

    def may_become(self, whole: Case, smaller: Case) -> bool:
        """Return whether all reports of a smaller case are reports of the whole one: other queries have none."""
        return all(
            pair in _reported(whole) and (smaller.scene == whole.scene or pair[1].same_rows is SameRows.BY_MEANING)
            for pair in _reported(smaller)
        )


def _reported(case: Case) -> set[tuple[Step, Step]]:
    steps = [replace(step, tags=()) for step in case.all_steps]
    return {pair for pair in pairwise(steps) if pair[1].same_rows}
