"""Planning cost: no query may need much more planning time or planner memory than on the reference.

This holds for all arms: a series that changes plans may search longer for them, but not much longer unnoticed.

Time is processor time, because elapsed time depends on the load of the machine. A single measurement is still
inaccurate: caches may be cold or shared. A statement that seems slower is planned again in rounds: on the reference,
then on the suspect, each alone. In each round, the fastest of several plannings counts. A finding needs an excess in
each round. If planning takes no longer than the margin, a round shows an excess with a probability of one half at most.
So all 20 rounds show one in 1 of a million statements that are planned again. Memory does not vary by chance; a few
rounds exclude effects of caches.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar, Final

from oracles.explain.nodes import Node, planning_time, plans
from oracles.explain.shape import plan_kinds
from oracles.framework.canaries import canary_case, query
from oracles.framework.pairwise import Pair, Sampled
from oracles.framework.planned import PLANNED, planned_again, planned_runs, planned_steps
from oracles.model.case import Case, Kind
from oracles.model.finding import UNDER_PLAN, Evidence, Finding
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Agree, Canary, Inconclusive, More, Observations, Unstable, Verdict
from oracles.model.sampling import Sample

_PLANNINGS: Final = 9  # of a round; the fastest counts

_CANARY: Final = canary_case(
    query("SELECT canary.n, nest.name FROM canary JOIN nest ON canary.n = nest.n"), samples=(PLANNED,)
)


@dataclass(frozen=True, slots=True)
class Cost:
    """A cost of planning. An excess is more than `factor` times the reference's cost, plus `least` units."""

    name: str
    unit: str
    factor: float
    least: float
    rounds: int
    of: Callable[[Node], float]

    def exceeds(self, ours: Node, theirs: Node) -> bool:
        """Return whether the suspect's cost exceeds the limit that the reference's cost sets."""
        return self.of(theirs) > self.factor * self.of(ours) + self.least


COSTS: Final = (
    Cost("planning time", "ms", 1.25, 0.5, 20, planning_time),
    Cost("planner memory", "kB", 1.1, 64, 3, lambda plan: float(plan.get("Planning", {}).get("Memory Used", 0))),
)


class _CostPair(Pair):
    def judge(self) -> tuple[Verdict, ...] | More:
        ours, theirs = (self.observations[planned_again(self.case, arm)] for arm in (self.reference, self.suspect))
        steps, obstacle = planned_steps(ours, theirs)
        verdicts: list[Verdict] = [Inconclusive(obstacle)] if obstacle else []
        for cost in COSTS:
            step = _worst(cost, steps, ours, theirs)
            judged = self._settled(cost, step) if step is not None else None
            if isinstance(judged, More):
                return judged
            verdicts += [judged] if judged else []
        return (*verdicts, Agree(len(steps)))

    def _settled(self, cost: Cost, step: int) -> Finding | Unstable | More:
        """Return a finding if all rounds show an excess; the first round without one ends them."""
        pairs: list[tuple[Node, Node]] = []
        for number in range(1, cost.rounds + 1):
            pair = []
            for arm in (self.reference, self.suspect):
                run = self._round(arm, step, number)
                if run not in self.observations:
                    return More((run,), frozenset({cost.name}))
                pair.append(dict(plans(self.observations[run])).get(step))
            ours, theirs = pair
            if ours is None or theirs is None or not cost.exceeds(ours, theirs):
                return Unstable(f"{cost.name}: not in all rounds")
            pairs.append((ours, theirs))
        return self._finding(cost, step, pairs)

    def _round(self, arm: str, step: int, number: int) -> Run:
        """Return a run that plans the step several times, and omits other queries unless they have parameters."""
        others = (
            (position, "SELECT")
            for position, each in enumerate(self.case.all_steps)
            if position != step and each.kind is Kind.QUERY and not each.params
        )
        return Run(arm, self.case.modes, plannings=_PLANNINGS, instead=tuple(others), repetition=number)

    def _finding(self, cost: Cost, step: int, pairs: Sequence[tuple[Node, Node]]) -> Finding:
        ours, theirs = (median(cost.of(pair[place]) for pair in pairs) for place in (0, 1))
        return Finding(
            oracle=PlanningCost.name,
            arms=(self.reference, self.suspect),
            origin=f"{cost.name}{UNDER_PLAN}{plan_kinds(pairs[0][0])}",
            step=step,
            summary=f"step {step}: {cost.name}: {theirs:.4g} {cost.unit}, {theirs / ours:.2f} times as much",
            expected=f"{cost.name} of {ours:.4g} {cost.unit}, or little more, in {len(pairs)} rounds",
            actual=f"{cost.name} of {theirs:.4g} {cost.unit}, too much more in each round",
            beside=(Evidence(self.case.all_steps[step].sql, planned=True),),
        )


class PlanningCost(Sampled):
    """Queries that need much more planning time or planner memory than on the reference."""

    name: ClassVar[str] = "planning_cost"
    samples: ClassVar[tuple[Sample, ...]] = (PLANNED,)
    canaries: ClassVar[tuple[Canary, ...]] = (Canary("plan_slowly", _CANARY), Canary("plan_hungrily", _CANARY))
    pair = _CostPair

    def looks(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return the planned runs of a sample of cases."""
        return planned_runs(case, arms)

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        """Return the verdicts on one other arm after another, with single runs, so that no two arms plan at once."""
        verdicts: list[Verdict] = []
        for suspect in arms[1:]:
            judged = super().judge(case, (arms[0], suspect), observations)
            if isinstance(judged, More):
                return judged
            verdicts += judged
        return tuple(verdicts)


def _worst(cost: Cost, steps: Sequence[int], ours: CaseObservation, theirs: CaseObservation) -> int | None:
    """Return the step with the largest excess; None if there is none."""
    one, other = dict(plans(ours)), dict(plans(theirs))

    def excess(step: int) -> float:
        return cost.of(other[step]) / max(cost.of(one[step]), 1e-3)

    def exceeding() -> Iterator[int]:
        return (step for step in steps if cost.exceeds(one[step], other[step]))

    return max(exceeding(), key=excess, default=None)
