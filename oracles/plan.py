"""Plan: arms that differ in plan-neutral patches only must have equal plans, to the last digit of the costs.

Queries are planned but not executed, in a sample of the cases.

Most inputs of planning are equal by construction: only the case itself analyzes tables, and ANALYZE reads all rows of
small tables. In inheritance trees it reads each child's share of 30,000 rows (acquire_inherited_sample_rows), which is
a random sample if more than about 130 children have rows. So each arm plans several times. All plans of the reference
must be equal, and each plan of the suspect must differ from them. By chance alone, that happens in 1 of 16,000 cases
with a difference.

The sizes of tables are inputs, too. A transaction in another database, such as that of another worker, may keep a
server from removing dead rows (GetSnapshotData, heap_page_prune_opt), so that the next rows need another page. If
tables have other sizes after the case, the difference is inconclusive.

A finding names the first node that differs. The properties of nodes (all but their figures) are compared from the top,
because the nodes below a node of another type have another purpose. Figures are compared from the bottom, because a
node's cost includes the costs below it. What EXPLAIN shows of a feature in its group of fields is no property.

A node of the suspect may return fewer columns than on the reference. Whether a scan below a hash join returns columns
that nothing needs is free of cost in the plan, and depends on whether tuples will be written to batches
(use_physical_tlist, create_hashjoin_plan in createplan.c).
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Final

from oracles.explain.nodes import Node, plans
from oracles.framework.pairwise import REPETITIONS, Pair, SampledPairwise
from oracles.framework.shared_runs import PLANNED, PLANNED_JOIN, planned_run, planned_runs, planned_steps
from oracles.model.case import Case
from oracles.model.finding import UNDER_PLAN, Evidence, Finding
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Agree, Canary, Inconclusive, More, Sample, Unstable, Verdict

_FIGURES: Final = ("Startup Cost", "Total Cost", "Plan Rows", "Plan Width")
_COLUMNS: Final = "Output"
_TEMPORARY: Final = re.compile(r"\bpg_temp_\d+\b")  # the number is the backend's, not the plan's


@dataclass(frozen=True, slots=True)
class Difference:
    """Differing values of two nodes in the same place, by JSON key; None if a node lacks the key."""

    path: tuple[str, ...]  # node types of the reference's plan, from the top
    ours: Mapping[str, Any]
    theirs: Mapping[str, Any]
    figures: bool  # the plans differ in figures only


def first_difference(ours: Node, theirs: Node) -> Difference | None:
    """Return the first difference between two plans (nodes of EXPLAIN (FORMAT JSON)); None if they are equal."""
    if ours == theirs:
        return None
    pairs = list(_pairs(ours, theirs, ()))
    properties = ((path, _kind(one), _kind(other)) for path, one, other in pairs)
    kinds = (_difference(path, one, _with_columns_of(one, other), figures=False) for path, one, other in properties)
    figures = (_difference(path, _figures(one), _figures(other), figures=True) for path, one, other in reversed(pairs))
    return next(filter(None, chain(kinds, figures)), None)


def _without_groups(node: Node, groups: Collection[str]) -> Node:
    """Return a plan without these groups of fields."""
    kept = {key: value for key, value in node.items() if key not in groups}
    return kept | {"Plans": [_without_groups(below, groups) for below in kept["Plans"]]} if "Plans" in kept else kept


def _pairs(ours: Node, theirs: Node, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Node, Node]]:
    """Yield path and nodes of each common place, each before those below it."""
    path = (*above, str(ours.get("Node Type")))
    yield path, ours, theirs
    for one, other in zip(ours.get("Plans", ()), theirs.get("Plans", ()), strict=False):
        yield from _pairs(one, other, path)


def _kind(node: Node) -> dict[str, Any]:
    properties = {key: _without_numbers(value) for key, value in node.items() if key not in (*_FIGURES, "Plans")}
    return properties | {"nodes below": len(node.get("Plans", ()))}


def _with_columns_of(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Return the properties of a node with the reference's columns if it lacks only some of these."""
    columns = iter(ours.get(_COLUMNS, ()))
    # `in` consumes the iterator, so the columns must also be in the reference's order
    lacks = all(column in columns for column in theirs.get(_COLUMNS, ()))
    return theirs | {_COLUMNS: ours[_COLUMNS]} if lacks and _COLUMNS in ours else theirs


def _figures(node: Node) -> dict[str, Any]:
    return {key: node.get(key) for key in _FIGURES}


def _without_numbers(value: Any) -> Any:
    """Return a value without the number in the schema name of temporary tables, which depends on the session."""
    if isinstance(value, str):
        return _TEMPORARY.sub("pg_temp", value)
    return [_without_numbers(each) for each in value] if isinstance(value, Sequence) else value


def _difference(
    path: tuple[str, ...], ours: Mapping[str, Any], theirs: Mapping[str, Any], *, figures: bool
) -> Difference | None:
    keys = [key for key in dict.fromkeys((*ours, *theirs)) if ours.get(key) != theirs.get(key)]
    one, other = ({key: side.get(key) for key in keys} for side in (ours, theirs))
    return Difference(path, one, other, figures) if keys else None


_SYMPTOM: Final = "plan"
_STAGES: Final = (REPETITIONS[:1], REPETITIONS)  # one repetition is enough if the reference does not repeat its plan


class _PlanPair(Pair):
    def judge(self) -> tuple[Verdict, ...] | More:
        steps, doubt = planned_steps(self._seen(self.reference), self._seen(self.suspect))
        differing = [step for step in steps if self._difference(step, self.reference, self.suspect)]
        unstable: set[int] = set()
        for stage in _STAGES:
            if differing != sorted(unstable) and (missing := self.missing(self._runs(stage))):
                return More(missing, frozenset({_SYMPTOM}))
            unstable |= {step for step in differing if step not in unstable and not self._stands(step, stage)}
        verdicts: list[Verdict] = [self._verdict(step, unstable) for step in differing]
        if doubt:
            verdicts.append(doubt)
        agreed = len(steps) - len(differing)
        return (*verdicts, Agree(agreed)) if agreed or not verdicts else tuple(verdicts)

    def _stands(self, step: int, stage: Sequence[int]) -> bool:
        """Return whether all plans of the reference are equal, and each plan of the suspect differs from them."""
        steady = not any(self._difference(step, self.reference, self.reference, number) for number in stage)
        return steady and all(self._difference(step, self.reference, self.suspect, number) for number in stage)

    def _difference(self, step: int, one: str, other: str, repetition: int = 0) -> Difference | None:
        """Return the difference between one arm's plan and another's, or that of a repetition.

        None if they are equal, or if the other run has no plan.
        """
        ours, theirs = self._plan(step, one), self._plan(step, other, repetition)
        return first_difference(ours, theirs if theirs is not None else ours)

    def _plan(self, step: int, arm: str, repetition: int = 0) -> Any:
        plan = dict(plans(self._seen(arm, repetition))).get(step, {}).get("Plan")
        return plan and _without_groups(plan, {feature.group for feature in self.features})

    def _verdict(self, step: int, unstable: set[int]) -> Finding | Unstable | Inconclusive:
        found = self._difference(step, self.reference, self.suspect)
        assert found is not None
        where = " > ".join(found.path)
        sides = _properties_text(where, found.ours), _properties_text(where, found.theirs)
        if step in unstable:
            return Unstable("plans: not in all runs", step, sides)
        if self._seen(self.reference).sizes != self._seen(self.suspect).sizes:
            return Inconclusive("tables have other sizes", step, sides)
        return Finding(
            oracle=Plan.name,
            arms=(self.reference, self.suspect),
            origin=f"{_SYMPTOM}{UNDER_PLAN}{_what(found)}",
            step=step,
            summary=f"step {step}: another plan: {_what(found)}",
            expected=sides[0],
            actual=sides[1],
            evidence=(Evidence(self.case.all_steps[step].sql, planned=True),),
        )

    def _runs(self, stage: Sequence[int]) -> Iterator[Run]:
        return (planned_run(self.case, arm, number) for arm in (self.reference, self.suspect) for number in stage)

    def _seen(self, arm: str, repetition: int = 0) -> CaseObservation:
        return self.observations[planned_run(self.case, arm, repetition)]


class Plan(SampledPairwise):
    """Plans or costs that differ between arms of plan-neutral patches."""

    name: ClassVar[str] = "plan"
    samples: ClassVar[tuple[Sample, ...]] = (PLANNED,)
    canaries: ClassVar[tuple[Canary, ...]] = (Canary("change_cost", PLANNED_JOIN), Canary("other_plan", PLANNED_JOIN))
    needs_equal_plans: ClassVar[bool] = True
    pair = _PlanPair

    def own_runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return the planned runs of a sample of cases."""
        return planned_runs(case, arms)


def _what(found: Difference) -> str:
    """Return a text of the difference without literals."""
    kind, other = found.path[-1], found.theirs.get("Node Type")
    if other is not None:
        return f"{other} instead of {kind}"
    return f"{'figures' if found.figures else ', '.join(found.ours)} of {kind}"


def _properties_text(where: str, values: Node) -> str:
    return "\n".join([where, *(f"{key}: {value}" for key, value in values.items())])
