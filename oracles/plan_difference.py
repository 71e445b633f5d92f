"""Where two plans differ: the first node that does, and what it says otherwise.

What a node is (all but its figures) is compared from the top, since the nodes below another kind of node serve another
purpose. Figures are compared from the bottom, since a node's cost is made of the costs below it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from oracles.explanation import Node

_FIGURES: Final = ("Startup Cost", "Total Cost", "Plan Rows", "Plan Width")
_TEMPORARY: Final = re.compile(r"\bpg_temp_\d+\b")  # the number is the backend's, not the plan's


@dataclass(frozen=True, slots=True)
class Difference:
    """Two nodes in the same place; values by key, as JSON tells them, None where a node lacks the key."""

    path: tuple[str, ...]  # node types from the top, as the reference has them
    ours: Mapping[str, Any]
    theirs: Mapping[str, Any]
    figures: bool  # only figures differ, anywhere


def first_difference(ours: Node, theirs: Node) -> Difference | None:
    """Return the first node that differs between two plans (nodes of EXPLAIN (FORMAT JSON)), if any does."""
    if ours == theirs:
        return None
    pairs = list(_pairs(ours, theirs, ()))
    kinds = (_difference(path, _kind(one), _kind(other), figures=False) for path, one, other in pairs)
    figures = (_difference(path, _figures(one), _figures(other), figures=True) for path, one, other in reversed(pairs))
    return next(filter(None, chain(kinds, figures)), None)


def _pairs(ours: Node, theirs: Node, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Node, Node]]:
    """Yield nodes in the same places: each before those below it, so in reverse each after them."""
    path = (*above, str(ours.get("Node Type")))
    yield path, ours, theirs
    for one, other in zip(ours.get("Plans", ()), theirs.get("Plans", ()), strict=False):
        yield from _pairs(one, other, path)


def _kind(node: Node) -> dict[str, Any]:
    told = {key: _without_numbers(value) for key, value in node.items() if key not in (*_FIGURES, "Plans")}
    return told | {"nodes below": len(node.get("Plans", ()))}


def _figures(node: Node) -> dict[str, Any]:
    return {key: node.get(key) for key in _FIGURES}


def _without_numbers(value: Any) -> Any:
    """Return a value in which the schema of temporary tables has the same name in all sessions."""
    if isinstance(value, str):
        return _TEMPORARY.sub("pg_temp", value)
    return [_without_numbers(each) for each in value] if isinstance(value, Sequence) else value


def _difference(
    path: tuple[str, ...], ours: Mapping[str, Any], theirs: Mapping[str, Any], *, figures: bool
) -> Difference | None:
    keys = [key for key in dict.fromkeys((*ours, *theirs)) if ours.get(key) != theirs.get(key)]
    one, other = ({key: side.get(key) for key in keys} for side in (ours, theirs))
    return Difference(path, one, other, figures) if keys else None
