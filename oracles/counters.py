"""Counters: what EXPLAIN (ANALYZE) tells of a hash join adds up, on each arm by itself."""

from collections.abc import Iterator
from typing import ClassVar, Final

from oracles.explain.hash_join import IDENTITIES, Join
from oracles.explain.inconsistencies import Contradiction, InconsistentFigures
from oracles.explain.nodes import LocatedNode, Node, loops, places
from oracles.framework.canaries import AS_HASH_JOIN, canary_case, query
from oracles.model.oracle import Canary
from oracles.model.sampling import EXPLAINED

_CANARY: Final = canary_case(
    query("SELECT canary.n, nest.name FROM canary LEFT JOIN nest ON canary.n = nest.n"),
    modes=(AS_HASH_JOIN, EXPLAINED.mode),
)


class Counters(InconsistentFigures):
    """Figures of joins that contradict each other are wrong, whatever the other arm says."""

    name: ClassVar[str] = "counters"
    canaries: ClassVar[tuple[Canary, ...]] = (Canary("miscount", _CANARY),)

    def contradictions(self, explained: Node) -> Iterator[Contradiction]:
        """Yield the identities that a hash join breaks."""
        for join in map(_join, places(explained)):
            if join is not None:
                broken = (each.name for each in IDENTITIES if each.fails(join))
                yield from (Contradiction(name, f"Hash {join.kind} Join", _told(join)) for name in broken)


def _join(place: LocatedNode) -> Join | None:
    """Return the hash join at this place, if there is one that ran."""
    is_join = place.node["Node Type"] == "Hash Join" and loops(place.node) > 0
    return Join(place.node, place.finished) if is_join else None


def _told(join: Join) -> tuple[str, ...]:
    told = {key: value for key, value in {**join.node, **join.hash}.items() if key != "Plans"}
    return (
        f"returned {join.returned} of outer {join.outer} and inner {join.inner} in {loops(join.node)} loops",
        *(f"{key}: {told[key]}" for key in sorted(told) if "Hash B" in key or key.startswith("Rows Removed")),
        *(f"{key}: {value}" for key, value in join.filter.items()),
    )
