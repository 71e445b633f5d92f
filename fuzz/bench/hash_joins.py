"""What the benches of hash joins share: the time that a query takes, and what its join did."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from fuzz.bench.bench import BenchError, Connection

Node = Mapping[str, Any]


def milliseconds(connection: Connection, query: str, seconds: int) -> float:
    """Return milliseconds a query: the mean of as many as fill the time, one at least."""
    start, number = time.perf_counter(), 0
    while not number or time.perf_counter() - start < seconds:
        connection.execute(query)
        number += 1
    return (time.perf_counter() - start) / number * 1000


def explained_join(connection: Connection, query: str, label: str) -> Node:
    """Run a query and return its topmost hash join, as EXPLAIN tells it. Raises BenchError if it has none."""
    ((plans,),) = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {query}").fetchall()
    join = next((node for node in _nodes(plans[0]["Plan"]) if node["Node Type"] == "Hash Join"), None)
    if join is None:
        raise BenchError(f"the query of {label} was not executed as a hash join")
    return join


def _nodes(plan: Node) -> Iterator[Node]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)
