"""Batches of hash joins: blocks written to their files, and joins that legally have more batches than the reference's.

If the expected tuples just fit without the array of buckets, a server that counts the array starts with more batches
(ExecChooseHashTableSize). It doubles the batches when tuples and array exceed the memory (ExecHashTableInsert,
ExecHashIncreaseNumBatches). EXPLAIN reports all of these figures: expected rows and width, buckets, both numbers of
batches, and the peak, which is at least the memory when batches were doubled.
"""

import math
from collections.abc import Iterable, Iterator, Set
from typing import Final

from oracles.buckets import BATCHES, BUCKETS, FEWEST, LEAST_TUPLE, ORIGINAL, PEAK, POINTER, expected_tuples
from oracles.explain.hash_memory import allowance
from oracles.explain.nodes import LocatedNode, Node, is_shared, loops, places

WRITTEN: Final = "Temp Written Blocks"  # of a node and all nodes below
CHUNK_BLOCKS: Final = 4  # STS_CHUNK_PAGES
ORIGINAL_BATCHES: Final = "Original Hash Batches"
_BLOCK: Final = 8192
_FOR_SKEW: Final = 0.02  # of the memory; for the most common values (SKEW_HASH_MEM_PERCENT)
_CHUNK: Final = 32  # kB, HASH_CHUNK_SIZE
_CHUNK_HEADER: Final = 1 / 16  # kB, at least HASH_CHUNK_HEADER_SIZE
_MANY_TUPLES: Final = 32  # by chance, all or none of them leave a batch in 1 of 2^31 cases

Path = tuple[int, ...]


def shares(place: LocatedNode) -> int:
    """Return the number of participants whose memory a hash table may use: all for a shared one, else one."""
    return place.participants if is_shared(place.node) else 1


def largest_peak(place: LocatedNode, allowed: float, widest: float) -> int:
    """Return the largest legal peak of a node in kB, as EXPLAIN rounds it up.

    `allowed` is the limit of a process in kB, and `widest` the size of the widest tuple of hash tables in bytes.
    """
    return math.ceil(allowed * shares(place) + _surplus(place, allowed, widest / 1024))


def _surplus(place: LocatedNode, allowed: float, widest: float) -> float:
    """Return the memory in kB that a node may use beyond its limit; `widest` is in kB, too.

    Each participant of a Parallel Hash takes a first chunk without a check. When it loads a batch from files, it leaves
    another one partly empty (ExecParallelHashTupleAlloc). A wide tuple has a chunk of its own.
    """
    if place.node["Node Type"] != "Hash":
        return 1
    if is_shared(place.node):
        return 2 * place.participants * max(_CHUNK, widest + _CHUNK_HEADER)
    skew = _FOR_SKEW * allowed if place.node.get(ORIGINAL_BATCHES, 1) > 1 else 0
    return skew + max(widest, 1)


def depends_on_order(explained: Node, place: LocatedNode) -> bool:
    """Return whether the peak of a node may depend on the order of its rows, and the order may differ between arms.

    The table of an aggregate exceeds its limit by a block or an array, depending on the groups that come first. A hash
    join returns rows in the order of batches and buckets, and parallel workers in any order.
    """
    below = (each for each in places(explained) if each.path[: len(place.path)] == place.path)
    ordering = ("Hash", "Gather", "Gather Merge")
    mixed = any(each.node["Node Type"] in ordering or each.participants > 1 for each in below)
    return place.node["Node Type"] != "Hash" and mixed


def memory_of_buckets(table: Node) -> float:
    """Return the memory in kB of a table's buckets, if its peak includes them.

    A Parallel Hash counts added buckets twice (ExecParallelHashIncreaseNumBuckets, ExecHashTableDetachBatch).
    """
    buckets = table.get(BUCKETS, 0)
    added = max(0, buckets - table.get(ORIGINAL, 0)) if is_shared(table) else 0
    return float(buckets + added) * POINTER / 1024


def measures_tuples(table: Node) -> bool:
    """Return whether all processes measure the tuples of this hash table."""
    return not any(is_shared(child) and child["Node Type"] == "Hash Join" for child in table.get("Plans", ()))


def may_be_indivisible(allowed: float, widest: float) -> bool:
    """Return whether so few tuples of this size (bytes) fill the limit (kB) that by chance all may be in one batch."""
    return allowed * 1024 < _MANY_TUPLES * widest


def splits(explained: Node, path: Path) -> bool:
    """Return whether the node at this path has more than one batch."""
    return any(place.path == path for place in _divided(explained))


def _divided(explained: Node) -> Iterator[LocatedNode]:
    """Yield the hash tables with more than one batch."""
    return (place for place in places(explained) if place.node.get(BATCHES, 1) > 1)


def larger_batch(batches: int) -> float:
    """Return the largest limit in kB of a batch that a server prefers to doubling this number of batches.

    It doubles the limit if that needs no more memory than a buffer of a block for each of two more files per batch.
    """
    return 2 * batches * 2 * _BLOCK / 1024 if batches > 1 else 0


def counts_files(explained: Node) -> bool:
    """Return whether a table with an immense number of expected rows has fewer batches than its tuples need."""
    allowed = allowance(explained.get("Settings", {})) * 1024
    tables = (place.node for place in places(explained) if ORIGINAL_BATCHES in place.node)
    return any(
        node[ORIGINAL_BATCHES] < min(node.get("Plan Rows", 0) * LEAST_TUPLE / allowed, allowed // POINTER / 2)
        for node in tables
    )


def has_uneven_batches(explained: Node, path: Path) -> bool:
    """Return whether the table at this path has several batches and exceeds its memory."""
    allowed = allowance(explained.get("Settings", {}))
    tables = (place for place in _divided(explained) if place.path == path)
    return any(place.node.get(PEAK, 0) > allowed * shares(place) for place in tables)


def overfull_tables(explained: Node, widest: float = 0) -> frozenset[Path]:
    """Return the paths of tables with several batches that exceed their memory by more than one tuple.

    A table exceeds it by one tuple whenever the server doubles the batches. `widest` is its size in bytes.
    """
    allowed = allowance(explained.get("Settings", {}))
    divided = _divided(explained)
    return frozenset(place.path for place in divided if place.node.get(PEAK, 0) > largest_peak(place, allowed, widest))


def own_written(node: Node) -> int:
    """Return the number of blocks that a node wrote, without the nodes below."""
    below: int = sum(child.get(WRITTEN, 0) for child in node.get("Plans", ()))
    written: int = node.get(WRITTEN, 0)
    return written - below


def written_without(explained: Node, joins: Set[Path]) -> int:
    """Return the number of blocks that a plan wrote, without hash joins at these paths and their tables."""
    top: int = explained["Plan"].get(WRITTEN, 0)
    apart = (place.node for place in places(explained) if place.path in joins or _is_table_of(place, joins))
    return top - sum(map(own_written, apart))


def _is_table_of(place: LocatedNode, joins: Set[Path]) -> bool:
    return place.node["Node Type"] == "Hash" and place.path[:-1] in joins


def partial_blocks(join: Node) -> int:
    """Return the number of blocks in a hash join's batch files that may be partial: two files per batch and loop."""
    hashes: Iterable[Node] = (child for child in join.get("Plans", ()) if join["Node Type"] == "Hash Join")
    files = sum(2 * node.get("Hash Batches", 1) for node in hashes if node.get("Hash Batches", 1) > 1) * loops(join)
    return int(files * (CHUNK_BLOCKS if is_shared(join) else 1))


_ALIGNMENT: Final = 8  # MAXIMUM_ALIGNOF


def joins_short_of_memory(ours: Node, theirs: Node) -> frozenset[Path]:
    """Return the paths of hash joins that have more batches than the reference's, and need them."""
    allowed = allowance(theirs.get("Settings", {})) * 1024
    pairs = zip(places(ours), places(theirs), strict=True)
    return frozenset(
        after.path[:-1]
        for before, after in pairs
        if BATCHES in after.node and _needs_more(before, after, allowed, expected_tuples(theirs, after))
    )


def _needs_more(before: LocatedNode, after: LocatedNode, allowed: float, expected: float) -> bool:
    ours, theirs = before.node, after.node
    if theirs[BATCHES] <= ours[BATCHES]:
        return False
    planned = theirs[ORIGINAL_BATCHES] > ours[ORIGINAL_BATCHES]
    grown = theirs[BATCHES] > max(theirs[ORIGINAL_BATCHES], ours[BATCHES])
    return (not planned or _were_expected(before, after, allowed, expected)) and (
        not grown or _was_full(after, allowed)
    )


def _were_expected(before: LocatedNode, after: LocatedNode, allowed: float, expected: float) -> bool:
    """Return whether half as many batches lack memory for the buckets and the tuples that the planner may expect.

    A Parallel Hash may use the memory of all participants if that makes a single batch sufficient, else that of one.
    """
    node = after.node
    combined = is_shared(node) and before.node[ORIGINAL_BATCHES] == 1
    fewer = 1 if combined else node[ORIGINAL_BATCHES] // 2
    tuples = expected * _size(node) / fewer
    buckets = max(node[ORIGINAL], FEWEST if fewer == 1 else 0)
    return bool(tuples + buckets * POINTER > allowed * (1 - _FOR_SKEW) * (after.participants if combined else 1))


def _was_full(table: LocatedNode, allowed: float) -> bool:
    """Return whether tuples and buckets may have exceeded the memory.

    True for a Parallel Hash, whose peak is unknown.
    """
    node = table.node
    return is_shared(node) or node[PEAK] * 1024 + node[BUCKETS] * POINTER > allowed


def _size(node: Node) -> int:
    """Return the size in memory, in bytes, of a tuple of the expected width; in a file it is not larger."""
    return int(LEAST_TUPLE + -(-node["Plan Width"] // _ALIGNMENT) * _ALIGNMENT)
