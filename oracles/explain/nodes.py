"""Plan nodes: a statement's plan and figures of its execution, as reported by EXPLAIN (ANALYZE, FORMAT JSON).

Rows are reported as the rounded average of all loops, so a total is known only as an interval. The shape of a plan is
the tree of its node types as short text.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from oracles.model.case import Case, Kind
from oracles.model.mode import Mode
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Sample

Node = Mapping[str, Any]
EXPLAINED: Final = Sample("explained", 6)
# Figures that are added to the output of EXPLAIN
PLANNER_CPU: Final = "Planner CPU Time"  # ms
EXECUTOR_CPU: Final = "Executor CPU Time"  # ms, with that of parallel workers
EXECUTOR_MEMORY: Final = "Executor Memory"  # kB in all contexts at the end of the query, without parallel workers
# ms of CPU time for which the executor left a request for an interrupt pending, longest of all processes
UNINTERRUPTED: Final = "Uninterrupted CPU Time"
# ms of CPU time from a cancel to its error, or to the end of the query. Only in runs under `canceling`, if the query
# took long enough. The only figure of a query that failed.
CANCEL_DELAY: Final = "Cancel Delay"
# Bytes, largest of all hash tables. Only in runs under MEASURED. The leader of a parallel plan does not measure rows of
# a parallel-aware join.
WIDEST_HASH_TUPLE: Final = "Widest Hash Tuple"
MEASURED: Final = Mode("hash_tuples", (("pgduel_probe.hash_tuples", "on"),))


def canceling(milliseconds: int) -> Mode:
    """Return the mode that cancels an explained query after so much CPU time of one of its processes."""
    settings = (("pgduel_probe.cost", "on"), ("pgduel_probe.cancel_after", str(milliseconds)))
    return Mode(f"cancel after {milliseconds} ms", settings)


def salted(salt: int) -> Mode:
    """Return the mode that changes all hash values, so that each batch of a hash join has other tuples."""
    return Mode(f"hash_salt {salt}", (("pgduel_probe.hash_salt", str(salt)),))


# Nodes that read their whole input before they return a row.
_BLOCKING: Final = frozenset({"Hash", "Sort"})
# Nodes that have read their whole input when they have returned all of their rows.
_FINISHING: Final = frozenset(
    {
        *("Aggregate", "Append", "Gather", "Gather Merge", "Group", "Incremental Sort", "LockRows", "Materialize"),
        *("Merge Append", "ModifyTable", "ProjectSet", "Result", "Subquery Scan", "Unique", "WindowAgg"),
    }
)
_KEEPS_OUTER: Final = frozenset({"Left", "Anti", "Full"})
_SAME_CHILDREN_ONCE: Final = frozenset({"Append", "Merge Append", "BitmapAnd", "BitmapOr"})
_INCIDENTAL: Final = frozenset({"Hash", "Limit", "Materialize", "Result", "Sort", "Subquery Scan"})
_UNREMARKABLE: Final = frozenset({"", "Inner", "Simple", "Plain"})


@dataclass(frozen=True, slots=True)
class Span:
    """An interval that contains an unknown number."""

    low: float
    high: float

    def __add__(self, other: "Span") -> "Span":
        return Span(self.low + other.low, self.high + other.high)

    def __mul__(self, other: "Span") -> "Span":
        return Span(self.low * other.low, self.high * other.high)

    def may_be_at_most(self, other: "Span") -> bool:
        """Return whether this number may be at most the other one."""
        return self.low <= other.high

    def __str__(self) -> str:
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"


@dataclass(frozen=True, slots=True)
class LocatedNode:
    """A plan node and its place in the plan."""

    node: Node
    path: tuple[int, ...]  # numbers of children, from the top
    participants: int  # processes that may execute it: the workers of a Gather above, and the leader
    gathers: int  # executions of that Gather; 1 if there is none
    finished: bool  # certainly returned all of its rows, in each of its loops


def explained_runs(case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
    """Return an explained run on each arm if the case is in the sample and has a query."""
    wanted = case in EXPLAINED and any(step.kind is Kind.QUERY for step in case.all_steps)
    return tuple(Run(arm, case.modes, explain=True) for arm in arms) if wanted else ()


def plans(observed: CaseObservation) -> Iterator[tuple[int, Node]]:
    """Yield position and EXPLAIN output of each explained step."""
    for position, seen in enumerate(observed.steps):
        if seen.plan and "Plan" in seen.plan:
            yield position, seen.plan


def planning_time(explained: Node) -> float:
    """Return the planning time in ms: processor time if it is known, else elapsed time."""
    return float(explained.get(PLANNER_CPU, explained.get("Planning Time", 0)))


def is_shared(table: Node) -> bool:
    """Return whether the participants of a parallel plan share the hash table of a node."""
    return bool(table.get("Parallel Aware"))


def nodes_of(top: Node) -> Iterator[Node]:
    """Yield a node and all nodes below, each before those below it."""
    yield top
    for child in top.get("Plans", ()):
        yield from nodes_of(child)


def places(explained: Node) -> Iterator[LocatedNode]:
    """Yield all nodes of a plan, each before those below it. EXPLAIN (ANALYZE) executes a statement to its end."""
    yield from _below(LocatedNode(explained["Plan"], (), 1, 1, finished=True))


def _below(place: LocatedNode) -> Iterator[LocatedNode]:
    yield place
    participants, gathers = place.participants, place.gathers
    if place.node["Node Type"] in ("Gather", "Gather Merge"):
        participants, gathers = place.node.get("Workers Planned", 0) + 1, loops(place.node)
    for number, child in enumerate(place.node.get("Plans", ())):
        finished = _finishes(place, child)
        yield from _below(LocatedNode(child, (*place.path, number), participants, gathers, finished))


def _finishes(place: LocatedNode, child: Node) -> bool:
    """Return whether the child certainly returned all of its rows, in each of its loops."""
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
    if kind == "SetOp":  # since 18, its second input, sorted, is not read beyond the end of the first one
        return relation != "Inner" or parent.get("Strategy") != "Sorted"
    return kind in _FINISHING


def _surely_has_rows(join: Node) -> bool:
    """Return whether the hash table was never empty. A join with an empty one does not read its whole outer side."""
    inner = join["Plans"][-1]
    return loops(inner) == 1 and rows(inner).low > 0


def loops(node: Node) -> int:
    """Return the number of executions of a node, by all participants."""
    return int(node.get("Actual Loops", 0))


def rows(node: Node) -> Span:
    """Return the number of rows that the node returned in all of its loops."""
    return total(node, "Actual Rows")


def total(node: Node, name: str) -> Span:
    """Return the sum over all loops of a figure reported as average: a whole number, or one with two decimals."""
    value, times = node.get(name, 0), loops(node)
    unsure = 0.0 if times <= 1 else times * (0.5 if isinstance(value, int) else 0.005)
    return Span(max(0.0, value * times - unsure), value * times + unsure)


def power_of_two(number: float) -> bool:
    """Return whether a number is a power of two."""
    return number == int(number) > 0 and int(number) & (int(number) - 1) == 0


def plan_shape(explained: Mapping[str, Any] | None) -> str:
    """Return the shape of an EXPLAIN (FORMAT JSON) plan, such as `Hash Join(Seq Scan, Hash(Seq Scan))`.

    Children of equal shape below an Append occur once, so that the shape does not depend on the number of partitions.
    """
    return _shape(explained["Plan"]) if explained and "Plan" in explained else "unknown plan"


def plan_kinds(explained: Mapping[str, Any] | None) -> str:
    """Return the sorted kinds of nodes in a plan.

    There are far fewer of these than shapes, so queries that show the same bug have one fingerprint.
    """
    if not explained or "Plan" not in explained:
        return "unknown"
    kinds = {" ".join(_words(node)) for node in nodes_of(explained["Plan"])}
    return ", ".join(sorted(kinds - _INCIDENTAL))


def _shape(node: Mapping[str, Any]) -> str:
    children = [_shape(child) for child in node.get("Plans", ())]
    if node["Node Type"] in _SAME_CHILDREN_ONCE:
        children = list(dict.fromkeys(children))
    inside = f"({', '.join(children)})" if children else ""
    return " ".join(_words(node)) + inside


def _words(node: Mapping[str, Any]) -> Iterator[str]:
    """Yield the node's properties that select other code of the executor, then its type."""
    if node.get("Parallel Aware"):
        yield "Parallel"
    for key in ("Partial Mode", "Join Type", "Strategy", "Operation"):
        if (value := node.get(key, "")) not in _UNREMARKABLE:
            yield value
    yield node["Node Type"]
