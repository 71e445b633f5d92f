"""Plans as EXPLAIN (ANALYZE, FORMAT JSON) tells them, made by hand."""

from dataclasses import replace
from typing import Any

from oracles.model.observation import CaseObservation, Observation
from tests.oracles.observed import ok, seen

Node = dict[str, Any]


def node(kind: str, rows: float, *below: Node, loops: int = 1, **more: Any) -> Node:
    """Return a node; keywords are told under their own names, with spaces for underscores."""
    told = {name.replace("_", " "): value for name, value in more.items()}
    return {"Node Type": kind, "Actual Rows": rows, "Actual Loops": loops, **told, "Plans": list(below)}


def hash_join(
    kind: str,
    rows: float,
    outer: float,
    inner: float,
    *,
    table: Node | None = None,
    read: float | None = None,
    loops: int = 1,
    shared: bool = False,
    **more: Any,
) -> Node:
    """Return a hash join of two scans; `table` is told of its hash table, into which `inner` of `read` rows went."""
    told = {"Hash Buckets": 1024, "Original Hash Buckets": 1024, "Hash Batches": 4, "Original Hash Batches": 4}
    told |= {"Peak Memory Usage": 40} | (table or {})
    left = node("Seq Scan", outer, loops=loops, Parent_Relationship="Outer")
    source = node("Seq Scan", inner if read is None else read, loops=loops, Parent_Relationship="Outer")
    right = node("Hash", inner, source, loops=loops, Parent_Relationship="Inner", Parallel_Aware=shared) | told
    return node("Hash Join", rows, left, right, loops=loops, Join_Type=kind, Parallel_Aware=shared, **more)


def explained(plan: Node | None, settings: dict[str, str] | None = None) -> Observation:
    """Return a step that was explained."""
    return replace(ok(), plan={"Plan": plan, "Settings": settings or {}} if plan else None)


def explained_case(plan: Node | None, settings: dict[str, str] | None = None) -> CaseObservation:
    """Return a case of one such step."""
    return seen(explained(plan, settings))
