"""The common part of the benches of hash joins: the time of a query, and EXPLAIN's figures of its join."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from fuzz.bench.bench import BenchError, Connection

Node = Mapping[str, Any]


def milliseconds(connection: Connection, query: str, seconds: float) -> float:
    """Return milliseconds per query: the mean of all runs within the time, at least one."""
    start, number = time.perf_counter(), 0
    while not number or time.perf_counter() - start < seconds:
        connection.execute(query)
        number += 1
    return (time.perf_counter() - start) / number * 1000


def explained_join(connection: Connection, query: str, label: str) -> Node:
    """Run a query and return its topmost hash join from EXPLAIN. Raises BenchError if it has none."""
    ((plans,),) = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {query}").fetchall()
    join = next((node for node in _nodes(plans[0]["Plan"]) if node["Node Type"] == "Hash Join"), None)
    if join is None:
        raise BenchError(f"the query of {label} was not executed as a hash join; choose another size")
    return join


def _nodes(plan: Node) -> Iterator[Node]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)
