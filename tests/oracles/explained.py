"""Hand-made plans in the form of EXPLAIN (ANALYZE, FORMAT JSON)."""

from dataclasses import replace
from typing import Any

from oracles.model.observation import CaseObservation, Observation
from tests.oracles.observed import ok, seen

Node = dict[str, Any]


def node(kind: str, rows: float, *below: Node, loops: int = 1, **more: Any) -> Node:
    """Return a node; keywords become fields, with spaces for underscores."""
    fields = {name.replace("_", " "): value for name, value in more.items()}
    return {"Node Type": kind, "Actual Rows": rows, "Actual Loops": loops, **fields, "Plans": list(below)}


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
    """Return a hash join of two scans.

    `table` has fields of the hash table, which holds `inner` of the `read` rows.
    """
    fields = {"Hash Buckets": 1024, "Original Hash Buckets": 1024, "Hash Batches": 4, "Original Hash Batches": 4}
    fields |= {"Peak Memory Usage": 40} | (table or {})
    left = node("Seq Scan", outer, loops=loops, Parent_Relationship="Outer")
    source = node("Seq Scan", inner if read is None else read, loops=loops, Parent_Relationship="Outer")
    right = node("Hash", inner, source, loops=loops, Parent_Relationship="Inner", Parallel_Aware=shared) | fields
    return node("Hash Join", rows, left, right, loops=loops, Join_Type=kind, Parallel_Aware=shared, **more)


def explained(plan: Node | None, settings: dict[str, str] | None = None) -> Observation:
    """Return the observation of an explained step."""
    return replace(ok(), plan={"Plan": plan, "Settings": settings or {}} if plan else None)


def explained_case(plan: Node | None, settings: dict[str, str] | None = None) -> CaseObservation:
    """Return the observation of a case of one explained step."""
    return seen(explained(plan, settings))
