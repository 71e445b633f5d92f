"""Counters: the figures of EXPLAIN (ANALYZE) must be consistent on each arm.

The figures are those of hash joins, and those with invariants in the manifest of a series. Those of a hash join satisfy
a table of identities. They are totals of all loops and participants. A join that was not executed to its end, such as
below LIMIT, may have read rows whose results it did not return. So each identity states whether it needs the end
(`at_end`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from oracles.explain.figures import Figures, figures
from oracles.explain.inconsistencies import Inconsistency, InconsistentFigures
from oracles.explain.nodes import EXPLAINED, LocatedNode, Node, Span, loops, places, power_of_two, rows, total
from oracles.framework.canaries import canary_case, query
from oracles.model.mode import HASH_ONLY
from oracles.model.oracle import Canary


@dataclass(frozen=True, slots=True)
class Join:
    """A hash join with its inputs."""

    node: Node
    finished: bool

    @property
    def kind(self) -> str:
        """Return the join type, such as Left or Right Anti."""
        return str(self.node["Join Type"])

    @property
    def hash(self) -> Node:
        """Return the node that builds the hash table."""
        return self._input("Inner")

    @property
    def source(self) -> Node:
        """Return the node whose rows go into the hash table."""
        return next(iter(self.hash.get("Plans", ())), {})

    @property
    def returned(self) -> Span:
        """Return the number of rows that the join returned."""
        return rows(self.node)

    @property
    def formed(self) -> Span:
        """Return the number of joined rows, including those that a filter on the join removed."""
        return self.returned + total(self.node, "Rows Removed by Filter")

    @property
    def outer(self) -> Span:
        """Return the number of rows read from the outer side."""
        return rows(self._input("Outer"))

    @property
    def inner(self) -> Span:
        """Return the number of rows inserted into the hash table."""
        return rows(self.hash)

    def _input(self, relation: str) -> Node:
        return next((child for child in self.node["Plans"] if child.get("Parent Relationship") == relation), {})


Test = Callable[[Join], bool]


@dataclass(frozen=True, slots=True)
class Identity:
    """A condition that holds for each hash join of these types."""

    name: str
    holds: Test
    kinds: frozenset[str] = frozenset()  # join types; empty: all
    at_end: bool = False  # holds only for a join that returned all of its rows

    def fails(self, join: Join) -> bool:
        """Return whether the condition applies to this join and does not hold."""
        if (self.kinds and join.kind not in self.kinds) or (self.at_end and not join.finished):
            return False
        return not self.holds(join)


def _kinds(*names: str) -> frozenset[str]:
    return frozenset(names)


def _batches_are_powers_of_two(join: Join) -> bool:
    return all(power_of_two(join.hash[name]) for name in ("Hash Batches", "Original Hash Batches") if name in join.hash)


def _batches_grow(join: Join) -> bool:
    return bool(join.hash.get("Original Hash Batches", 0) <= join.hash.get("Hash Batches", 0))


def _built_once_a_loop(join: Join) -> bool:
    return loops(join.hash) == loops(join.node)


# Facts of nodeHash.c and nodeHashjoin.c. The oracle `buckets` has the identities of buckets.
IDENTITIES: Final = (
    Identity(
        "inner join returns no more than all pairs",
        lambda join: join.returned.may_be_at_most(join.outer * join.inner),
        _kinds("Inner"),
    ),
    Identity("no row is returned twice", lambda join: join.returned.may_be_at_most(join.outer), _kinds("Semi", "Anti")),
    Identity(
        "no inner row is returned twice",
        lambda join: not _built_once_a_loop(join) or join.returned.may_be_at_most(join.inner),
        _kinds("Right Anti", "Right Semi"),
    ),
    Identity(
        "every outer row is kept",
        lambda join: join.outer.may_be_at_most(join.formed),
        _kinds("Left", "Full"),
        at_end=True,
    ),
    Identity(
        "every inner row is kept",
        lambda join: join.inner.may_be_at_most(join.formed),
        _kinds("Right", "Full"),
        at_end=True,
    ),
    Identity("hash table holds no more than was read", lambda join: join.inner.may_be_at_most(rows(join.source))),
    Identity("batches are a power of two", _batches_are_powers_of_two),
    Identity("batches never become fewer", _batches_grow),
)


_CANARY: Final = canary_case(
    query("SELECT canary.n, nest.name FROM canary LEFT JOIN nest ON canary.n = nest.n"),
    modes=(HASH_ONLY,),
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
