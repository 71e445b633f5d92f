"""Counters: the figures of EXPLAIN (ANALYZE) must be consistent on each arm.

The figures are those of hash joins, and those with invariants in the manifest of a series.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from oracles.explain.figures import Figures, figures
from oracles.explain.hash_join import IDENTITIES, Join
from oracles.explain.inconsistencies import Inconsistency, InconsistentFigures
from oracles.explain.nodes import EXPLAINED, LocatedNode, Node, loops, places
from oracles.framework.canaries import AS_HASH_JOIN, canary_case, query
from oracles.model.oracle import Canary

_CANARY: Final = canary_case(
    query("SELECT canary.n, nest.name FROM canary LEFT JOIN nest ON canary.n = nest.n"),
    modes=(AS_HASH_JOIN,),
    samples=(EXPLAINED,),
)


class Counters(InconsistentFigures):
    """Inconsistent figures of EXPLAIN (ANALYZE)."""

    name: ClassVar[str] = "counters"
    canaries: ClassVar[tuple[Canary, ...]] = (Canary("miscount", _CANARY),)

    def inconsistencies(self, explained: Node) -> Iterator[Inconsistency]:
        """Yield the identities that hash joins violate, and the violated invariants of features."""
        for place in places(explained):
            if loops(place.node) > 0:
                yield from _of_hash_join(place)
                found = (figures(feature, place.node) for feature in self.features)
                yield from (broken for each in found if each is not None for broken in _of_feature(each))


def _of_hash_join(place: LocatedNode) -> Iterator[Inconsistency]:
    if place.node["Node Type"] == "Hash Join":
        join = Join(place.node, place.finished)
        broken = (each.name for each in IDENTITIES if each.fails(join))
        yield from (Inconsistency(name, _kind(join.node), _join_figures(join)) for name in broken)


def _of_feature(found: Figures) -> Iterator[Inconsistency]:
    node = found.node
    of_join = _join_figures(Join(node, finished=False)) if node["Node Type"] == "Hash Join" else ()
    for invariant in found.broken:
        yield Inconsistency(invariant.name, _kind(node), (*of_join, *_figures(found.fields)))


def _kind(node: Node) -> str:
    """Return the type of a node with its join type, such as Hash Left Join."""
    join = node.get("Join Type")
    return f"{node['Node Type'].removesuffix(' Join')} {join} Join" if join else str(node["Node Type"])


def _join_figures(join: Join) -> tuple[str, ...]:
    shown = {key: value for key, value in {**join.node, **join.hash}.items() if key != "Plans"}
    return (
        f"returned {join.returned} of outer {join.outer} and inner {join.inner} in {loops(join.node)} loops",
        *(f"{key}: {shown[key]}" for key in sorted(shown) if "Hash B" in key or key.startswith("Rows Removed")),
    )


def _figures(fields: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(f"{key}: {value}" for key, value in fields.items() if not isinstance(value, list | dict))
