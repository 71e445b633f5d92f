"""Reported: two queries that have equal rows according to another fuzzer or a generator have equal rows here, too.

In the case, a query names the reason for its equality with the step before (`Step.same_rows`). Nothing else is taken
from another fuzzer's report.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar, Final

from oracles.framework.canaries import canary_case, query
from oracles.framework.metamorphic import Metamorphic
from oracles.framework.relations import ArmRuns, MetamorphicRelation
from oracles.model.case import Case, SameRows, Step
from oracles.model.oracle import Canary, Sample

REPORTED: Final = Sample("reported", 1)  # cases of other sources have no step to judge
_CHANGING: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "COPY", "WITH"})


class Reported(Metamorphic):
    """Queries that should return the same rows according to another fuzzer or a generator, but differ."""

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
            yield from arm_runs.relations(pairs, {each: _name(steps, each) for each in pairs})

    def may_become(self, whole: Case, smaller: Case) -> bool:
        """Return whether all reports of a smaller case are reports of the whole one: other queries have none."""
        return all(
            pair in _reported(whole) and (smaller.scene == whole.scene or pair[1].same_rows is not SameRows.BY_CONTENT)
            for pair in _reported(smaller)
        )


def _name(steps: Sequence[Step], reported: int) -> str:
    """Return the name of a report's relation. That of triggers has the first word of the logged statement."""
    if steps[reported].same_rows is not SameRows.BY_TRIGGERS:
        return "queries reported as equivalent differ"
    words = (step.sql.split(maxsplit=1)[0].upper() for step in reversed(steps[:reported]))
    changed = next((word for word in words if word in _CHANGING), "no change")
    return f"transition tables and row triggers differ after {changed}"


def _reported(case: Case) -> set[tuple[Step, Step]]:
    steps = [replace(step, tags=()) for step in case.all_steps]
    return {pair for pair in pairwise(steps) if pair[1].same_rows}
