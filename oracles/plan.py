"""Plan: arms whose patches leave plans as they are plan each query alike, to the last digit of its costs.

For arms that differ in plan-neutral patches only. Queries are planned, not run, so what they cost does not matter; a
share of the cases is looked at.

What plans rest on is equal by construction: nothing analyzes tables but the case itself, and ANALYZE sees all rows of
small tables. Of inheritance trees it takes each child's share of 30,000 rows (acquire_inherited_sample_rows), so where
more than some 130 children hold rows, it draws lots. So each arm plans several times over: the reference must agree
with itself, and each of the suspect's plans differ from it. Were all a matter of chance, that would happen in 1 of
16,000 cases that differ at all.
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from oracles.canary_case import canary_case, query
from oracles.case import Case
from oracles.explanation import Node, plans
from oracles.finding import UNDER_PLAN, Beside, Finding
from oracles.mode import Mode
from oracles.observation import CaseObservation, Run
from oracles.oracle import Agree, Canary, Inconclusive, More, Unstable, Verdict
from oracles.pairwise import AGAIN, Pair, Sampled
from oracles.plan_difference import Difference, first_difference
from oracles.planned import planned_again, planned_runs, planned_steps
from oracles.sampling import PLANNED, Sample

_SYMPTOM: Final = "plan"
_STAGES: Final = (AGAIN[:1], AGAIN)  # what the reference does not repeat at once needs no more runs

_CANARY: Final = canary_case(
    query("SELECT canary.n, nest.name FROM canary JOIN nest ON canary.n = nest.n"), modes=(PLANNED.mode,)
)


class _PlanPair(Pair):
    def judge(self) -> tuple[Verdict, ...] | More:
        steps, obstacle = planned_steps(self._seen(self.reference), self._seen(self.suspect))
        differing = [step for step in steps if self._difference(step, self.reference, self.suspect)]
        unstable: set[int] = set()
        for stage in _STAGES:
            if differing != sorted(unstable) and (missing := self.missing(self._runs(stage))):
                return More(missing, frozenset({_SYMPTOM}))
            unstable |= {step for step in differing if step not in unstable and not self._stands(step, stage)}
        verdicts: list[Verdict] = [self._verdict(step, unstable) for step in differing]
        if obstacle:
            verdicts.append(Inconclusive(obstacle))
        agreed = len(steps) - len(differing)
        return (*verdicts, Agree(agreed)) if agreed or not verdicts else tuple(verdicts)

    def _stands(self, step: int, stage: Sequence[Mode]) -> bool:
        """Tell whether the reference plans the step alike each time, and the suspect otherwise each time."""
        steady = not any(self._difference(step, self.reference, self.reference, mode) for mode in stage)
        return steady and all(self._difference(step, self.reference, self.suspect, mode) for mode in stage)

    def _difference(self, step: int, one: str, other: str, *again: Mode) -> Difference | None:
        """Return where the plan of one arm differs from that of another, or of a repetition, which may lack it."""
        ours, theirs = self._plan(step, one), self._plan(step, other, *again)
        return first_difference(ours, theirs if theirs is not None else ours)

    def _plan(self, step: int, arm: str, *again: Mode) -> Any:
        return dict(plans(self._seen(arm, *again))).get(step, {}).get("Plan")

    def _verdict(self, step: int, unstable: set[int]) -> Finding | Unstable:
        if step in unstable:
            return Unstable("plans: not in all runs")
        found = self._difference(step, self.reference, self.suspect)
        assert found is not None
        where = " > ".join(found.path)
        return Finding(
            oracle=Plan.name,
            arms=(self.reference, self.suspect),
            origin=f"{_SYMPTOM}{UNDER_PLAN}{_what(found)}",
            step=step,
            summary=f"step {step}: another plan: {_what(found)}",
            expected=_told(where, found.ours),
            actual=_told(where, found.theirs),
            beside=(Beside(self.case.all_steps[step].sql, planned=True),),
        )

    def _runs(self, stage: Sequence[Mode]) -> Iterator[Run]:
        return (self._run(arm, mode) for arm in (self.reference, self.suspect) for mode in stage)

    def _run(self, arm: str, *again: Mode) -> Run:
        return planned_again(self.case, arm, *again)

    def _seen(self, arm: str, *again: Mode) -> CaseObservation:
        return self.observations[self._run(arm, *again)]


class Plan(Sampled):
    """Plans and costs of plan-neutral arms are equal."""

    name: ClassVar[str] = "plan"
    samples: ClassVar[tuple[Sample, ...]] = (PLANNED,)
    canaries: ClassVar[tuple[Canary, ...]] = (Canary("change_cost", _CANARY), Canary("other_plan", _CANARY))
    needs_equal_plans: ClassVar[bool] = True
    pair = _PlanPair

    def looks(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return the planned runs of a share of cases."""
        return planned_runs(case, arms)


def _what(found: Difference) -> str:
    """Return what differs, without literals."""
    kind, other = found.path[-1], found.theirs.get("Node Type")
    if other is not None:
        return f"{other} instead of {kind}"
    return f"{'figures' if found.figures else ', '.join(found.ours)} of {kind}"


def _told(where: str, values: Node) -> str:
    return "\n".join([where, *(f"{key}: {value}" for key, value in values.items())])
