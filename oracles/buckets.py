"""Buckets: the buckets and memory of a hash table, as EXPLAIN (ANALYZE) reports them, must agree with its tuples.

Servers differ in when they choose the number of buckets:

- when they create the table, by the planner's estimate; the array of buckets is never counted as memory;
- when tuples arrive, by adding buckets; the array is counted;
- when all tuples have arrived; the array is counted.

A server whose final number differs from the original one is of the second or third kind. Only then are the identities
of these kinds tested.

Each figure is the maximum of all batches, participants and rescans. For a Parallel Hash, participants read the figures
after the build. Its rows are those that were read, including NULLs that no join keeps. So most identities are tested
only for tables with a single batch that one process built once.

A Parallel Hash that is planned for one batch starts with a bucket for each expected tuple (ExecHashTableCreate). All
participants compute the same number, whenever they arrive and however many workers are launched. EXPLAIN reports the
expected tuples of one participant: the planner divides their total by a number that depends on the workers of the inner
path (get_parallel_divisor). The Gather has the workers of the outer path (create_hashjoin_path), which may be fewer.
EXPLAIN does not report those of the inner path, but max_parallel_workers_per_gather limits them. So this setting limits
the total, and with it the buckets.

A participant records the memory of a Parallel Hash when it leaves a batch (ExecHashTableDetachBatch). If LIMIT ends the
scan first, nothing is recorded (ExecShutdownNode). So the peak may be that of an earlier scan with fewer buckets, and
is compared with the buckets only if there was one scan.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from oracles.explain.hash_memory import allowance
from oracles.explain.inconsistencies import Inconsistency, InconsistentFigures
from oracles.explain.nodes import EXPLAINED, LocatedNode, Node, Span, is_shared, loops, places, power_of_two, rows
from oracles.framework.canaries import canary_case, query
from oracles.model.mode import HASH_ONLY
from oracles.model.oracle import Canary

BUCKETS: Final = "Hash Buckets"
ORIGINAL: Final = "Original Hash Buckets"
BATCHES: Final = "Hash Batches"
PEAK: Final = "Peak Memory Usage"  # kB, rounded up

FEWEST: Final = 1024  # minimal number of buckets
POINTER: Final = 8  # bytes of a bucket
LEAST_TUPLE: Final = 32  # bytes: HJTUPLE_OVERHEAD and the header of a MinimalTuple

_MOST_WORKERS: Final = "max_parallel_workers_per_gather"
_DEFAULT_MOST_WORKERS: Final = 2  # EXPLAIN (SETTINGS) omits settings with their built-in value

_CANARY: Final = canary_case(
    query("SELECT flock.n, canary.name FROM flock LEFT JOIN canary ON canary.n = flock.n"),
    modes=(HASH_ONLY,),
    samples=(EXPLAINED,),
)


@dataclass(frozen=True, slots=True)
class HashTable:
    """A hash table that was built: its place in the plan, its memory limit, and its expected size."""

    place: LocatedNode
    allowed: float  # bytes, for one process
    expected: float  # the largest number of tuples that the planner may have expected

    @property
    def node(self) -> Node:
        """Return the plan node."""
        return self.place.node

    @property
    def shared(self) -> bool:
        """Return whether it is a Parallel Hash."""
        return is_shared(self.node)

    @property
    def tuples(self) -> Span:
        """Return the number of tuples, summed over all builds; a Parallel Hash may hold fewer."""
        return rows(self.node)

    @property
    def whole(self) -> bool:
        """Return whether all of these tuples were in memory at once."""
        return bool(self.node[BATCHES] == 1) and loops(self.node) == 1 and not self.shared

    @property
    def changed(self) -> bool:
        """Return whether the number of buckets differs from the original one."""
        return bool(self.node[BUCKETS] != self.node[ORIGINAL])

    @property
    def peak_has_buckets(self) -> bool:
        """Return whether the peak includes the buckets."""
        return not self.shared or (self.node[BATCHES] == 1 and self.node[PEAK] > 0 and self.place.gathers == 1)

    @property
    def array(self) -> int:
        """Return the size of the array of buckets in bytes."""
        return int(self.node[BUCKETS]) * POINTER

    @property
    def peak(self) -> int:
        """Return the peak memory in bytes, rounded up to 1024."""
        return int(self.node[PEAK]) * 1024


def expected_tuples(explained: Node, place: LocatedNode) -> float:
    """Return the largest number of tuples that the planner may have expected in a hash table of a plan.

    EXPLAIN's figure is rounded. That of a Parallel Hash is divided among the workers of the inner path and the leader.
    """
    figure = float(place.node["Plan Rows"]) + 0.5
    if not is_shared(place.node):
        return figure
    setting = int(explained.get("Settings", {}).get(_MOST_WORKERS, _DEFAULT_MOST_WORKERS))
    workers = max(setting, place.participants - 1)
    return figure * (workers + max(0.0, 1 - 0.3 * workers))  # get_parallel_divisor


Test = Callable[[HashTable], bool]


@dataclass(frozen=True, slots=True)
class Identity:
    """A test that holds for each table that meets the condition `applies`."""

    name: str
    applies: Test
    holds: Test


def _buckets_for(tuples: float) -> int:
    """Return the number of buckets for a number of tuples: one for each, rounded up to a power of two."""
    return int(max(FEWEST, 1 << max(0, int(tuples) - 1).bit_length()))


def _has_enough_buckets(table: HashTable) -> bool:
    """Return whether only one tuple may lack a bucket, or memory has no room for twice as many buckets.

    PostgreSQL's ExecHashTableInsert requests more buckets before it counts the tuple that it adds.
    """
    enough = table.node[BUCKETS] >= table.tuples.low - 1
    return enough or table.peak + table.array > table.allowed


IDENTITIES: Final = (
    Identity(
        "buckets are a power of two",
        lambda table: True,
        lambda table: power_of_two(table.node[BUCKETS]) and power_of_two(table.node[ORIGINAL]),
    ),
    Identity(
        "no more buckets at first than expected tuples deserve",
        lambda table: bool(table.node["Original Hash Batches"] == 1),
        lambda table: bool(table.node[ORIGINAL] <= _buckets_for(table.expected)),
    ),
    Identity(
        "no more buckets than tuples deserve",
        lambda table: table.changed,
        lambda table: bool(table.node[BUCKETS] <= _buckets_for(table.tuples.high)),
    ),
    Identity(
        "no fewer buckets than tuples deserve",
        lambda table: table.changed and table.whole,
        _has_enough_buckets,
    ),
    Identity(
        "memory holds the tuples",
        lambda table: table.whole,
        lambda table: table.peak >= LEAST_TUPLE * table.tuples.low,
    ),
    Identity(
        "memory holds the buckets",
        lambda table: table.changed and table.peak_has_buckets,
        lambda table: table.peak >= table.array,
    ),
    Identity(
        "memory holds tuples and buckets",
        lambda table: table.changed and table.whole,
        lambda table: table.peak >= table.array + LEAST_TUPLE * table.tuples.low,
    ),
)


class Buckets(InconsistentFigures):
    """Hash tables whose buckets do not fit their tuples, or are not counted as memory."""

    name: ClassVar[str] = "buckets"
    canaries: ClassVar[tuple[Canary, ...]] = tuple(
        Canary(fault, _CANARY) for fault in ("report_one_bucket", "report_many_buckets", "uncount")
    )

    def inconsistencies(self, explained: Node) -> Iterator[Inconsistency]:
        """Yield the identities that hash tables of the plan violate."""
        for table in _tables(explained):
            broken = (each.name for each in IDENTITIES if each.applies(table) and not each.holds(table))
            yield from (Inconsistency(name, _kind(table), _figures(table)) for name in broken)


def _tables(explained: Node) -> Iterator[HashTable]:
    """Yield the hash tables that a plan built."""
    allowed = allowance(explained.get("Settings", {})) * 1024
    for place in places(explained):
        if place.node["Node Type"] == "Hash" and loops(place.node) > 0 and BATCHES in place.node:
            yield HashTable(place, allowed, expected_tuples(explained, place))


def _kind(table: HashTable) -> str:
    return "Parallel Hash" if table.shared else "Hash"


def _figures(table: HashTable) -> tuple[str, ...]:
    shown = {key: value for key, value in table.node.items() if "Hash B" in key or key in (PEAK, "Plan Rows")}
    return (
        f"{table.tuples} tuples in {loops(table.node)} loops of {table.place.participants} participants,"
        f" {table.allowed / 1024:g} kB allowed",
        *(f"{key}: {value}" for key, value in sorted(shown.items())),
    )
