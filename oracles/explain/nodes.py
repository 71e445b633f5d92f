"""Explanation: the plan of a statement and what it did, node by node, as EXPLAIN (ANALYZE, FORMAT JSON) told it.

Rows are told as the average of all loops, rounded: what a figure says of the total is an interval.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from oracles.model.case import Case, Kind
from oracles.model.observation import CaseObservation, Run
from oracles.model.sampling import Sample

Node = Mapping[str, Any]
EXPLAINED: Final = Sample("explained", 6)
PLANNER_CPU: Final = "Planner CPU Time"  # ms: not EXPLAIN's, but told beside it to those who ask

# Nodes that read their input to its end before they return a row, however few of them are wanted then.
_BLOCKING: Final = frozenset({"Hash", "Sort"})
# Nodes that have read all of their input when they have returned all of their rows.
_FINISHING: Final = frozenset(
    {
        *("Aggregate", "Append", "Gather", "Gather Merge", "Group", "Incremental Sort", "LockRows", "Materialize"),
        *("Merge Append", "ModifyTable", "ProjectSet", "Result", "SetOp", "Subquery Scan", "Unique", "WindowAgg"),
    }
)
_KEEPS_OUTER: Final = frozenset({"Left", "Anti", "Full"})


@dataclass(frozen=True, slots=True)
class Span:
    """A number known to lie between two others."""

    low: float
    high: float

    def __add__(self, other: "Span") -> "Span":
        return Span(self.low + other.low, self.high + other.high)

    def __mul__(self, other: "Span") -> "Span":
        return Span(self.low * other.low, self.high * other.high)

    def may_be_at_most(self, other: "Span") -> bool:
        """Tell whether it is not surely more than the other."""
        return self.low <= other.high

    def __str__(self) -> str:
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"


@dataclass(frozen=True, slots=True)
class LocatedNode:
    """A node and where it stands."""

    node: Node
    path: tuple[int, ...]  # which child of which child of the top
    participants: int  # processes that may run it: those below a Gather, and the leader
    finished: bool  # surely returned all of its rows, in each of its loops


def explained_runs(case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
    """Return the explained runs of a case: once on each arm, if it is among those and has what can be explained."""
    wanted = case in EXPLAINED and any(step.kind is Kind.QUERY for step in case.all_steps)
    return tuple(Run(arm, case.modes, explain=True) for arm in arms) if wanted else ()


def plans(observed: CaseObservation) -> Iterator[tuple[int, Node]]:
    """Yield the position of each step that was explained, with what EXPLAIN returned."""
    for position, seen in enumerate(observed.steps):
        if seen.plan and "Plan" in seen.plan:
            yield position, seen.plan


def planning_time(explained: Node) -> float:
    """Return the milliseconds that planning took: of the processor if they are known, else on the clock."""
    return float(explained.get(PLANNER_CPU, explained.get("Planning Time", 0)))


def places(explained: Node) -> Iterator[LocatedNode]:
    """Yield all nodes of a plan, each before those below it. EXPLAIN (ANALYZE) runs a statement to its end."""
    yield from _below(LocatedNode(explained["Plan"], (), 1, finished=True))


def _below(place: LocatedNode) -> Iterator[LocatedNode]:
    yield place
    participants = place.participants
    if place.node["Node Type"] in ("Gather", "Gather Merge"):
        participants = place.node.get("Workers Planned", 0) + 1
    for number, child in enumerate(place.node.get("Plans", ())):
        finished = _finishes(place, child)
        yield from _below(LocatedNode(child, (*place.path, number), participants, finished))


def _finishes(place: LocatedNode, child: Node) -> bool:
    """Tell whether the child surely returned all rows it had, in each of its loops."""
    parent, relation = place.node, child.get("Parent Relationship", "")
    kind = parent["Node Type"]
    if relation in ("InitPlan", "SubPlan") or "Run Condition" in parent:
        return False
    if kind in _BLOCKING or child["Node Type"] == "Hash":
        return loops(child) > 0
    if not place.finished:
        return False
    if kind == "Hash Join":
        return parent["Join Type"] in _KEEPS_OUTER or _surely_has_rows(parent)
    if kind == "Nested Loop":
        whole = parent["Join Type"] in ("Inner", "Left") and not parent.get("Inner Unique", False)
        return relation == "Outer" or whole
    return kind in _FINISHING


def _surely_has_rows(join: Node) -> bool:
    """Tell whether the hash table was never empty: the outer side of a join that is, is not read to its end."""
    inner = join["Plans"][-1]
    return loops(inner) == 1 and rows(inner).low > 0


def loops(node: Node) -> int:
    """Return how often a node was run, by all participants."""
    return int(node.get("Actual Loops", 0))


def rows(node: Node) -> Span:
    """Return how many rows the node returned in all of its loops."""
    return total(node, "Actual Rows")


def total(node: Node, name: str) -> Span:
    """Return the sum over all loops of what is told as their average: in whole numbers, or with two decimals."""
    value, times = node.get(name, 0), loops(node)
    unsure = 0.0 if times <= 1 else times * (0.5 if isinstance(value, int) else 0.005)
    return Span(max(0.0, value * times - unsure), value * times + unsure)


def power_of_two(number: float) -> bool:
    """Return whether a number is a power of two."""
    return number == int(number) > 0 and int(number) & (int(number) - 1) == 0
