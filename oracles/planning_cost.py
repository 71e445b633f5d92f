"""Planning cost: no query takes much more CPU time or memory of the planner than on the reference.

The oracle judges all arms: patches that change plans may search longer for them, but not much longer unnoticed. Of
several plannings in a round, the one with the least time counts. Memory does not vary by chance; three rounds exclude
effects of caches.
"""

from collections.abc import Sequence
from typing import ClassVar, Final

from oracles.explain.nodes import planning_time
from oracles.framework.cost import Cost, CostOracle, CostPair
from oracles.framework.shared_runs import PLANNED, PLANNED_JOIN, planned_run, planned_runs, planned_steps
from oracles.model.case import Case
from oracles.model.finding import Evidence
from oracles.model.observation import Run
from oracles.model.oracle import Canary, Inconclusive, Sample

_PLANNINGS: Final = 9  # in a round

COSTS: Final = (
    Cost("planning time", "ms", 1.25, 0.5, 20, planning_time),
    Cost("planner memory", "kB", 1.1, 64, 3, lambda plan: float(plan.get("Planning", {}).get("Memory Used", 0))),
)


class _PlanningCostPair(CostPair):
    oracle = "planning_cost"
    costs = COSTS

    def first(self, arm: str) -> Run:
        return planned_run(self.case, arm)

    def round(self, arm: str, step: int, number: int) -> Run:
        return Run(arm, self.case.modes, plannings=_PLANNINGS, instead=self.others(step), repetition=number)

    def compared(self) -> tuple[list[int], Inconclusive | None]:
        return planned_steps(*(self.observations[self.first(arm)] for arm in (self.reference, self.suspect)))

    def evidence(self, sql: str) -> tuple[Evidence, ...]:
        return (Evidence(sql, planned=True),)


class PlanningCost(CostOracle):
    """Queries that need much more planning time or planner memory than on the reference."""

    name: ClassVar[str] = _PlanningCostPair.oracle
    samples: ClassVar[tuple[Sample, ...]] = (PLANNED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary("plan_slowly", PLANNED_JOIN),
        Canary("plan_with_more_memory", PLANNED_JOIN),
    )
    pair = _PlanningCostPair

    def own_runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return the planned runs of a share of cases."""
        return planned_runs(case, arms)
