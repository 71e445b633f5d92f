"""Batches: what EXPLAIN tells of hash tables that do not fit into memory, and of the files that their tuples go to."""

from collections.abc import Iterable, Set
from typing import Final

from oracles.buckets import PEAK
from oracles.explanation import Node, Place, loops, places
from oracles.hash_memory import allowance

WRITTEN: Final = "Temp Written Blocks"  # of a node and all below it
CHUNK_BLOCKS: Final = 4  # STS_CHUNK_PAGES


def shares(place: Place) -> int:
    """Return how many participants give a table their memory: all of them, or the one that it is private to."""
    return place.participants if is_shared(place.node) else 1


def splits(explained: Node, path: tuple[int, ...]) -> bool:
    """Tell whether the node at this path needs more than one batch."""
    return any(place.path == path and place.node.get("Hash Batches", 1) > 1 for place in places(explained))


def is_shared(node: Node) -> bool:
    """Tell whether participants of a parallel plan have the table in common."""
    return bool(node.get("Parallel Aware"))


def has_uneven_batches(explained: Node, path: tuple[int, ...] | None = None) -> bool:
    """Tell whether a table, or that at this path, has batches, one of which is larger than its memory."""
    allowed = allowance(explained.get("Settings", {}))
    tables = (place for place in places(explained) if place.node.get("Hash Batches", 1) > 1)
    return any(place.node.get(PEAK, 0) > allowed * shares(place) for place in tables if path in (None, place.path))


def own_written(node: Node) -> int:
    """Return how many blocks a node itself wrote: what is not in one batch, is in the files of others."""
    below: int = sum(child.get(WRITTEN, 0) for child in node.get("Plans", ()))
    written: int = node.get(WRITTEN, 0)
    return written - below


def written_without(explained: Node, joins: Set[tuple[int, ...]]) -> int:
    """Return how many blocks a plan wrote but for hash joins at these paths, and their tables."""
    top: int = explained["Plan"].get(WRITTEN, 0)
    apart = (place.node for place in places(explained) if place.path in joins or _is_table_of(place, joins))
    return top - sum(map(own_written, apart))


def _is_table_of(place: Place, joins: Set[tuple[int, ...]]) -> bool:
    return place.node["Node Type"] == "Hash" and place.path[:-1] in joins


def partial_blocks(join: Node) -> int:
    """Return how many blocks of a hash join's batch files may be written partly: two files a batch and loop."""
    hashes: Iterable[Node] = (child for child in join.get("Plans", ()) if join["Node Type"] == "Hash Join")
    files = sum(2 * node.get("Hash Batches", 1) for node in hashes if node.get("Hash Batches", 1) > 1) * loops(join)
    return int(files * (CHUNK_BLOCKS if is_shared(join) else 1))
