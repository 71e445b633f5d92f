"""Plan shape: the tree of a plan's node types as short text, and the set of its node types."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

_SAME_CHILDREN_ONCE: Final = frozenset({"Append", "Merge Append", "BitmapAnd", "BitmapOr"})
_INCIDENTAL: Final = frozenset({"Hash", "Limit", "Materialize", "Result", "Sort", "Subquery Scan"})
_UNREMARKABLE: Final = frozenset({"", "Inner", "Simple", "Plain"})


def plan_shape(explained: Mapping[str, Any] | None) -> str:
    """Return the shape of an EXPLAIN (FORMAT JSON) plan, such as `Hash Join(Seq Scan, Hash(Seq Scan))`.

    Children of equal shape below an Append occur once, so that the shape does not depend on the number of partitions.
    """
    return _shape(explained["Plan"]) if explained and "Plan" in explained else "unknown plan"


def plan_kinds(explained: Mapping[str, Any] | None) -> str:
    """Return the sorted kinds of nodes in a plan.

    There are far fewer of these than shapes, so queries that show the same bug have one fingerprint.
    """
    kinds = _kinds(explained["Plan"]) if explained and "Plan" in explained else {"unknown"}
    return ", ".join(sorted(kinds))


def _kinds(node: Mapping[str, Any]) -> set[str]:
    below = (_kinds(child) for child in node.get("Plans", ()))
    return {" ".join(_words(node))}.union(*below) - _INCIDENTAL


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
