"""Hash join identities: what holds of the figures that EXPLAIN (ANALYZE) tells of a hash join, as a table.

An identity is a name, the joins that it holds for, and a test. Figures are totals of all loops and participants. What
was not run to its end (below LIMIT, in a subquery that asks for one row) has read more than it returned, so an identity
says whether it needs the end.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from oracles.explain.nodes import Node, Span, loops, rows, total


@dataclass(frozen=True, slots=True)
class Join:
    """A hash join with its inputs, and its Bloom filter's figures where it had one."""

    node: Node
    finished: bool

    @property
    def kind(self) -> str:
        """Return the type of join, such as Left, Right Anti."""
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
        """Return how many rows the join returned."""
        return rows(self.node)

    @property
    def formed(self) -> Span:
        """Return how many rows the join formed: those that WHERE removed afterwards are counted in."""
        return self.returned + total(self.node, "Rows Removed by Filter")

    @property
    def outer(self) -> Span:
        """Return how many rows were read from the outer side."""
        return rows(self._input("Outer"))

    @property
    def inner(self) -> Span:
        """Return how many rows went into the hash table."""
        return rows(self.hash)

    @property
    def filter(self) -> Mapping[str, float]:
        """Return the figures of the Bloom filter, empty where there was none."""
        found: Mapping[str, float] = self.node.get("Bloom Filter", {})
        return found

    def _input(self, relation: str) -> Node:
        return next((child for child in self.node["Plans"] if child.get("Parent Relationship") == relation), {})


Test = Callable[[Join], bool]


@dataclass(frozen=True, slots=True)
class Identity:
    """What holds for each hash join of these types (all, if none is named)."""

    name: str
    holds: Test
    kinds: frozenset[str] = frozenset()
    at_end: bool = False  # only of a join that returned all of its rows
    of_filter: bool = False  # only where there is a Bloom filter

    def fails(self, join: Join) -> bool:
        """Tell whether it is of this join and does not hold."""
        if (self.kinds and join.kind not in self.kinds) or (self.at_end and not join.finished):
            return False
        return bool(join.filter or not self.of_filter) and not self.holds(join)


def _kinds(*names: str) -> frozenset[str]:
    return frozenset(names)


def power_of_two(number: float) -> bool:
    """Tell whether it is one."""
    return number == int(number) > 0 and int(number) & (int(number) - 1) == 0


def _batches_are_powers_of_two(join: Join) -> bool:
    return all(power_of_two(join.hash[name]) for name in ("Hash Batches", "Original Hash Batches") if name in join.hash)


def _batches_grow(join: Join) -> bool:
    return bool(join.hash.get("Original Hash Batches", 0) <= join.hash.get("Hash Batches", 0))


def _built_once_a_loop(join: Join) -> bool:
    return loops(join.hash) == loops(join.node)


def _sum(join: Join, *names: str) -> float:
    return sum(join.filter.get(name, 0) for name in names)


def _none(name: str) -> Test:
    return lambda join: join.filter.get(name, 0) == 0


# Facts of nodeHash.c and nodeHashjoin.c. What holds of the numbers of buckets is up to the oracle `buckets`.
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
    Identity(
        "every probe has an outcome",
        lambda join: _sum(join, "Probes") == _sum(join, "Rows Discarded", "Rows Emitted At Once", "Rows Passed"),
        of_filter=True,
    ),
    Identity(
        "only probes are deferred",
        lambda join: _sum(join, "Probes Deferred") <= _sum(join, "Probes"),
        of_filter=True,
    ),
    Identity(
        "false positives have passed",
        lambda join: _sum(join, "False Positives") <= _sum(join, "Rows Passed"),
        of_filter=True,
    ),
    Identity(
        "false positive rate is a share", lambda join: 0 <= _sum(join, "False Positive Rate") <= 1, of_filter=True
    ),
    Identity("no row is discarded", _none("Rows Discarded"), _kinds("Left", "Anti", "Full"), of_filter=True),
    Identity(
        "no row is emitted at once",
        _none("Rows Emitted At Once"),
        _kinds("Inner", "Semi", "Right", "Right Anti", "Right Semi"),
        of_filter=True,
    ),
    Identity(
        "rows emitted at once are returned or filtered",
        lambda join: _sum(join, "Rows Emitted At Once") <= join.formed.high,
        _kinds("Left", "Anti", "Full"),
        of_filter=True,
    ),
    Identity(
        "no outer row is probed twice",
        lambda join: _sum(join, "Probes", "Rows Not Probed") <= join.outer.high,
        of_filter=True,
    ),
    Identity("filter's bits are a power of two", lambda join: power_of_two(_sum(join, "Bits")), of_filter=True),
)
