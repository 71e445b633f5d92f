"""Costs of a statement, compared in rounds, for oracles of planning and of execution.

The first measurement of a statement proves little: caches may be cold, or other processes may use them. A statement
that seems more expensive is executed or planned again in rounds: on the reference, then on the suspect, each alone. It
is a finding if the suspect exceeds the reference in each round. If the true cost is within the margin, a round exceeds
it with a probability of at most one half. So 20 rounds give a false finding with a probability of at most one in a
million. Time is CPU time, because elapsed time depends on other processes of the machine.
"""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar, Final

from oracles.explain.nodes import EXPLAINED, Node, explained_runs, plan_kinds, plans
from oracles.framework.pairwise import Pair, SampledPairwise
from oracles.framework.verdicts import lost_session
from oracles.model.case import Case, Kind
from oracles.model.finding import UNDER_PLAN, Evidence, Finding
from oracles.model.observation import Run
from oracles.model.oracle import Agree, Inconclusive, More, Observations, Sample, Unstable, Verdict

MEASURED: Final = 3  # limit of statements of a case that are measured in rounds for each cost


@dataclass(frozen=True, slots=True)
class Cost:
    """A cost and its margin: the suspect may need `factor` times as much as the reference, plus `least` units.

    `allowed` returns further units that two plans, of the reference and of the suspect, may legally differ by.
    """

    name: str
    unit: str
    factor: float
    least: float
    rounds: int
    of: Callable[[Node], float]
    allowed: Callable[[Node, Node], float] = lambda _ours, _theirs: 0.0

    def exceeds(self, reference: Node, suspect: Node) -> bool:
        """Return whether the suspect's plan is beyond the margin."""
        return self.of(suspect) > self.factor * self.of(reference) + self.least + self.allowed(reference, suspect)


class CostPair(Pair):
    """A suspect and its reference, whose costs are compared."""

    oracle: ClassVar[str]
    costs: ClassVar[tuple[Cost, ...]]

    @abstractmethod
    def first(self, arm: str) -> Run:
        """Return the run of the first measurement."""

    @abstractmethod
    def round(self, arm: str, step: int, number: int) -> Run:
        """Return the run of a round, without the queries whose cost is not compared."""

    @abstractmethod
    def compared(self) -> tuple[list[int], Inconclusive | None]:
        """Return the steps whose costs can be compared, and a doubt about the others, if there is one."""

    @abstractmethod
    def evidence(self, sql: str) -> tuple[Evidence, ...]:
        """Return the evidence of a finding about a statement."""

    def legal_reason(self, _cost: Cost, _step: int) -> str:
        """Return why a cost may exceed the margin in each round without a fault; "" without such a reason."""
        return ""

    def judge(self) -> tuple[Verdict, ...] | More:
        """Return the verdicts on the costs that seem too high, and the number of compared statements."""
        steps, doubt = self.compared()
        verdicts: list[Verdict] = [doubt] if doubt else []
        skipped: set[int] = set()
        for cost in self.costs:
            exceeding = self._exceeding(cost, steps)
            judged = self._measured(cost, exceeding)
            if isinstance(judged, More):
                return judged
            verdicts += judged
            if others := exceeding[len(judged) :]:
                skipped |= set(others)
                costs = self._first_costs(cost, others[0])
                verdicts.append(Inconclusive(f"{cost.name}: only the largest were measured again", others[0], costs))
        return (*verdicts, Agree(len(steps) - len(skipped)))

    def _measured(self, cost: Cost, exceeding: Sequence[int]) -> list[Finding | Inconclusive | Unstable] | More:
        """Return the verdicts on the first of these steps: up to a finding, which may explain others, or the limit."""
        verdicts: list[Finding | Inconclusive | Unstable] = []
        for step in exceeding[:MEASURED]:
            judged = self._verdict(cost, step)
            if isinstance(judged, More):
                return judged
            verdicts.append(judged)
            if isinstance(judged, Finding):
                break
        return verdicts

    def first_plans(self, arm: str) -> Mapping[int, Node]:
        """Return the plans of the first measurement by step."""
        return self.plans_of(self.first(arm))

    def plans_of(self, run: Run) -> Mapping[int, Node]:
        """Return the plans of a run by step. They contain the costs."""
        return dict(plans(self.observations[run]))

    def place(self, _step: int, plan: Node) -> str:
        """Return the end of a finding's origin."""
        return f"{UNDER_PLAN}{plan_kinds(plan)}"

    def _exceeding(self, cost: Cost, steps: Sequence[int]) -> list[int]:
        """Return the steps that exceed the margin, those with the largest factor first."""
        ours, theirs = (self.first_plans(arm) for arm in (self.reference, self.suspect))

        def excess(step: int) -> float:
            return cost.of(theirs[step]) / max(cost.of(ours[step]), 1e-3)

        exceeding = (step for step in steps if cost.exceeds(ours[step], theirs[step]))
        return sorted(exceeding, key=excess, reverse=True)

    def _verdict(self, cost: Cost, step: int) -> Finding | Inconclusive | Unstable | More:
        """Return the verdict after several rounds. The first round within the margin ends them."""
        pairs: list[tuple[Node, Node]] = []
        for number in range(1, cost.rounds + 1):
            pair = []
            for arm in (self.reference, self.suspect):
                run = self.round(arm, step, number)
                if run not in self.observations:
                    return More((run,), frozenset({cost.name}))
                pair.append(self.plans_of(run).get(step))
            ours, theirs = pair
            if ours is None or theirs is None or not cost.exceeds(ours, theirs):
                return Unstable(f"{cost.name}: not in all rounds", step, self._first_costs(cost, step))
            pairs.append((ours, theirs))
        if reason := self.legal_reason(cost, step):
            return Inconclusive(f"{cost.name}: {reason}", step, self._first_costs(cost, step))
        return self._finding(cost, step, pairs)

    def _first_costs(self, cost: Cost, step: int) -> tuple[str, str]:
        ours, theirs = (cost.of(self.first_plans(arm)[step]) for arm in (self.reference, self.suspect))
        return f"{cost.name} of {ours:.4g} {cost.unit}", f"{cost.name} of {theirs:.4g} {cost.unit}"

    def others(self, step: int) -> tuple[tuple[int, str], ...]:
        """Return a replacement for each other query."""
        return tuple(
            (position, "SELECT")
            for position, each in enumerate(self.case.all_steps)
            if position != step and each.kind is Kind.QUERY
        )

    def _finding(self, cost: Cost, step: int, pairs: Sequence[tuple[Node, Node]]) -> Finding:
        ours, theirs = (median(cost.of(pair[place]) for pair in pairs) for place in (0, 1))
        times = f"{theirs / ours:.2f} times as much" if ours else "where the reference needs none"
        return Finding(
            oracle=self.oracle,
            arms=(self.reference, self.suspect),
            origin=f"{cost.name}{self.place(step, pairs[0][0])}",
            step=step,
            summary=f"step {step}: {cost.name}: {theirs:.4g} {cost.unit}, {times}",
            expected=f"{cost.name} of {ours:.4g} {cost.unit}, or little more, in {len(pairs)} rounds",
            actual=f"{cost.name} of {theirs:.4g} {cost.unit}, beyond the margin in each round",
            evidence=self.evidence(self.case.all_steps[step].sql),
        )


class ExplainedCostPair(CostPair):
    """A suspect and its reference, whose costs of execution are compared in explained runs."""

    def first(self, arm: str) -> Run:
        """Return the explained run that all oracles share."""
        return explained_runs(self.case, (arm,))[0]

    def round(self, arm: str, step: int, number: int) -> Run:
        """Return the explained run of a round."""
        executions, others = self.executions(step), self.others(step)
        return Run(arm, self.case.modes, explain=True, executions=executions, instead=others, repetition=number)

    def executions(self, step: int) -> int:
        """Return how often a round executes the query."""
        return 1

    def compared(self) -> tuple[list[int], Inconclusive | None]:
        """Return the steps whose plans have the same form."""
        seen = [self.observations[self.first(arm)] for arm in (self.reference, self.suspect)]
        if any(each.residue is None for each in seen):
            return [], lost_session(*seen)
        ours, theirs = (self.first_plans(arm) for arm in (self.reference, self.suspect))
        common = sorted(ours.keys() & theirs.keys())
        return [step for step in common if self.form(ours[step]) == self.form(theirs[step])], None

    @abstractmethod
    def form(self, plan: Node) -> Hashable:
        """Return the properties that must be equal in both plans for a comparison of their costs."""

    def evidence(self, sql: str) -> tuple[Evidence, ...]:
        """Return the evidence of an explained query."""
        return (Evidence(sql, explained=True),)


class CostOracle(SampledPairwise):
    """An oracle that compares costs. It judges one suspect after another, so that no two arms work at once."""

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        """Return the verdicts on all suspects, or a request for a single run."""
        verdicts: list[Verdict] = []
        for suspect in arms[1:]:
            judged = super().judge(case, (arms[0], suspect), observations)
            if isinstance(judged, More):
                return judged
            verdicts += judged
        return tuple(verdicts)


class ExplainedCostOracle(CostOracle):
    """An oracle that compares costs of execution, on a share of cases."""

    samples: ClassVar[tuple[Sample, ...]] = (EXPLAINED,)

    def own_runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return the explained runs of a share of cases."""
        return explained_runs(case, arms)
