"""Reach: the paths of planner and executor that a statement took, according to its EXPLAIN (ANALYZE, FORMAT JSON).

A counter is 1 for a statement whose plan has the feature at least once. So sums are numbers of statements, and shares
when divided by the counter `explained`. The reach of a feature has the statements that took each of its branches, by
type of join.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from oracles.explain.figures import figures
from oracles.explain.nodes import Node, nodes_of
from oracles.model.feature import Feature, snake

EXPLAINED = "explained"

_JOINS = {"Hash Join": "hash_join", "Merge Join": "merge_join", "Nested Loop": "nested_loop"}
_PARTITION = re.compile(r"_\d+$")  # EXPLAIN names a partition by the parent's alias and a number


def reach(plan: Node, features: Sequence[Feature] = ()) -> Counter[str]:
    """Return the counters of one plan, given as the object with the key "Plan" or as a plan node.

    `features` are the arm's; each may have counters of its own.
    """
    top = plan.get("Plan", plan)
    found = {EXPLAINED}
    if _ran(top) and top["Actual Rows"] > 0:
        found.add("rows")
    nodes = list(nodes_of(top))
    if not any(node["Node Type"] in ("Gather", "Gather Merge") for node in nodes):  # loops would include processes
        found.update(name for node in nodes for name in _rescan_counters(node))
    for node in nodes:
        found.update(_join_counters(node))
        found.update(_sort_counters(node))
        of_features = (figures(feature, node) for feature in features)
        found.update(name for each in of_features if each is not None for name in each.counters)
        found.update(name for name, holds in OF_NODE.get(node["Node Type"], ()) if holds(node))
        found.update(name for name, holds in ANY_NODE if holds(node))
    return Counter(found)


def _ran(node: Node) -> bool:
    return bool(node.get("Actual Loops", 0))


def _join_counters(node: Node) -> Iterator[str]:
    """Yield method, type, and method.type of a join: hash_join, left, hash_join.left."""
    method = _JOINS.get(node["Node Type"])
    if method and _ran(node):
        kind = _kind(node)
        yield from (method, kind, f"{method}.{kind}")


def _rescan_counters(node: Node) -> Iterator[str]:
    """Yield kept_table.type for a hash join executed several times with one hash table, or rebuilt_table.type."""
    if node["Node Type"] == "Hash Join":
        hashed = next(child for child in node["Plans"] if child["Node Type"] == "Hash")
        if node["Actual Loops"] > hashed["Actual Loops"] == 1:
            yield f"kept_table.{_kind(node)}"
        elif hashed["Actual Loops"] > 1:
            yield f"rebuilt_table.{_kind(node)}"


def _sort_counters(node: Node) -> Iterator[str]:
    """Yield sorted_on_disk.type for a merge join that returns to rows of a sort on disk, without Material above it."""
    inner = [each for each in node.get("Plans", ()) if each.get("Parent Relationship") == "Inner"]
    if node["Node Type"] == "Merge Join" and any(each.get("Sort Space Type") == "Disk" for each in inner):
        yield f"sorted_on_disk.{_kind(node)}"


def _kind(join: Node) -> str:
    return snake(str(join["Join Type"]))


def _members(node: Node) -> list[Node]:
    return [child for child in node["Plans"] if child["Parent Relationship"] == "Member"]


def _live(node: Node) -> bool:
    return sum(_ran(member) for member in _members(node)) >= 2


def _pruned(node: Node) -> bool:
    """Return whether partitions were pruned at the start of execution, or between rescans."""
    return node.get("Subplans Removed", 0) > 0 or (_ran(node) and any(not _ran(m) for m in _members(node)))


def _with_children(number: int) -> Callable[[Node], bool]:
    return lambda node: len(_members(node)) + node.get("Subplans Removed", 0) >= number


def _by_partition(*kinds: str) -> Callable[[Node], bool]:
    """Return a test for an Append whose children are nodes of these types over partitions."""

    def holds(node: Node) -> bool:
        return any(
            member["Node Type"] in kinds and any(_PARTITION.search(scan.get("Alias", "")) for scan in nodes_of(member))
            for member in _members(node)
        )

    return holds


def _more(value: str, than: str) -> Callable[[Node], bool]:
    return lambda node: bool(node.get(value, 0) > node.get(than, 0) > 0)


def _positive(value: str, least: int = 1) -> Callable[[Node], bool]:
    return lambda node: bool(node.get(value, 0) >= least)


def _spills(node: Node) -> bool:
    """Return whether a node wrote temporary blocks beside those of its children, which its number includes."""
    written = (each.get("Temp Written Blocks", 0) for each in (node, *node.get("Plans", ())))
    return bool(next(written) > sum(written))


def _is_parallel_hash(node: Node) -> bool:
    return _ran(node) and bool(node.get("Parallel Aware"))


def _cuts_off_parallel_hash(limit: Node) -> bool:
    """Return whether LIMIT may end workers that share a hash table, because the leader has enough rows."""
    gathers = (child for child in limit.get("Plans", ()) if child.get("Workers Launched", 0) > 0)
    return any(_is_parallel_hash(node) for top in gathers for node in nodes_of(top) if node["Node Type"] == "Hash")


_GROWN_BATCHES = _more("Hash Batches", "Original Hash Batches")
_GROWN_BUCKETS = _more("Hash Buckets", "Original Hash Buckets")
_Test = tuple[str, Callable[[Node], bool]]
_APPEND: tuple[_Test, ...] = (
    ("append.live>=2", _live),
    ("runtime_pruning", _pruned),
    ("partitionwise_join", _by_partition(*_JOINS)),
    ("partitionwise_aggregate", _by_partition("Aggregate")),
    *((f"children>={number}", _with_children(number)) for number in (32, 256)),
)
_INDEX_SCAN: tuple[_Test, ...] = (
    ("index_scan", _ran),
    ("index_scan.backward", lambda node: _ran(node) and node["Scan Direction"] == "Backward"),
)
OF_NODE: dict[str, tuple[_Test, ...]] = {
    "Append": _APPEND,
    "Merge Append": (*_APPEND, ("merge_append", _ran)),
    "Hash": (
        ("hash_join.multi_batch", _positive("Hash Batches", 2)),
        ("hash_join.grown_batches", _GROWN_BATCHES),
        ("hash_join.grown_buckets", _GROWN_BUCKETS),
        ("hash_join.grown_both", lambda node: _GROWN_BATCHES(node) and _GROWN_BUCKETS(node)),
        ("hash_join.fewer_buckets", _more("Original Hash Buckets", "Hash Buckets")),
        ("parallel_hash", _is_parallel_hash),
        ("parallel_hash.multi_batch", lambda node: _is_parallel_hash(node) and node.get("Hash Batches", 0) > 1),
    ),
    "Aggregate": (
        ("hash_aggregate", lambda node: _ran(node) and node.get("Strategy") == "Hashed"),
        ("hash_aggregate.spilled", _positive("Disk Usage")),
    ),
    "Limit": (("parallel_hash.left_early", _cuts_off_parallel_hash),),
    "Memoize": (("memoize", _ran), ("memoize.hits", _positive("Cache Hits"))),
    "Gather": (("parallel", _positive("Workers Launched")),),
    "Gather Merge": (("parallel", _positive("Workers Launched")), ("gather_merge", _ran)),
    "Incremental Sort": (("incremental_sort", _ran),),
    "Index Scan": _INDEX_SCAN,
    "Index Only Scan": (
        *_INDEX_SCAN,
        ("index_only_scan", _ran),
        ("index_only_scan.heap_fetches", _positive("Heap Fetches")),
    ),
    "Bitmap Heap Scan": (("bitmap_scan", _ran),),
    "Foreign Scan": (("foreign_scan", _ran),),
    "LockRows": (("row_locks", _ran),),
    "WindowAgg": (
        ("window", _ran),
        ("window.ended_early", lambda node: _ran(node) and "Run Condition" in node),
        ("window.spilled", _spills),
    ),
    "SetOp": (("set_operation", _ran),),
    "CTE Scan": (("cte_scan", _ran),),
}
ANY_NODE: tuple[_Test, ...] = (
    ("initplan", lambda node: node.get("Parent Relationship") == "InitPlan"),
    ("subplan", lambda node: node.get("Parent Relationship") == "SubPlan"),
)


@dataclass(frozen=True, slots=True)
class FeatureReach:
    """Numbers of statements that took the branches of a feature: rows are types of join, or one row."""

    feature: Feature
    statements: int  # whose plans show the feature
    branches: tuple[str, ...]  # the columns
    rows: tuple[tuple[str, tuple[int | None, ...]], ...]  # None: impossible
    counters: tuple[tuple[str, int], ...]

    @property
    def unreached(self) -> int:
        """Return the number of expected branches and counters that no statement reached."""
        cells = [count for _, counts in self.rows for count in counts]
        return cells.count(0) + [count for _, count in self.counters].count(0)

    @property
    def most(self) -> int:
        """Return the highest number."""
        return max((count for _, counts in self.rows for count in counts if count is not None), default=0)


def feature_reach(counts: Mapping[str, int], feature: Feature) -> FeatureReach:
    """Return a feature's reach according to a campaign's counters."""
    branches = tuple(branch.name for branch in feature.branches if branch.expected)
    rows = []
    for join in feature.joins or ("",):
        prefix = f"{feature.name}.{snake(join)}" if join else feature.name
        names = [f"{prefix}.{branch}" for branch in branches]
        rows.append((snake(join), tuple(counts.get(n, 0) if n in feature.expected else None for n in names)))
    counters = tuple((name, counts.get(name, 0)) for name in feature.counters)
    return FeatureReach(feature, counts.get(feature.name, 0), branches, tuple(rows) if branches else (), counters)
