"""Measurements that several benches share: the rate of pgbench, the time of a query, and EXPLAIN's figures of its join.

pgbench is that of an arm's own build.
"""

import os
import re
import time

from fuzz.bench.bench import BenchError, Connection
from fuzz.errors import last_line
from fuzz.servers.arm import Arm
from oracles.explain.nodes import Node, nodes_of

_ERROR = re.compile(r"^pgbench: error: (.*)", re.MULTILINE)
TPS = re.compile(r"^tps = ([0-9.]+)", re.MULTILINE)


def run_pgbench(arm: Arm, *arguments: str, database: str = "postgres", stdin: str = "") -> str:
    """Return pgbench's output. Raises BenchError with its first error."""
    cluster = arm.cluster
    server = ["-h", str(cluster.socket_dir), "-p", str(cluster.port), "-U", "postgres", database]
    done = cluster.run(arm.build.bindir / "pgbench", *arguments, *server, stdin=stdin)
    if done.returncode:
        found = _ERROR.search(done.stderr)
        why = found[1] if found else last_line(done.stderr, f"exit status {done.returncode}")
        raise BenchError(f"pgbench failed on arm {arm.name}: {why}")
    return done.stdout


def transactions_a_second(
    arm: Arm, *script: str, clients: int = 1, seconds: int = 1, database: str = "postgres", stdin: str = ""
) -> float:
    """Return the tps, without connecting, of the script in pgbench's options; `-f -` reads stdin.

    The account of servers runs pgbench, and may not be able to open a file of the caller. Raises BenchError.
    """
    threads = min(clients, len(os.sched_getaffinity(0)))
    options = ("-T", str(seconds), "-c", str(clients), "-j", str(threads))
    found = TPS.search(run_pgbench(arm, *script, *options, database=database, stdin=stdin))
    if found is None:
        raise BenchError(f"pgbench finished no transaction on arm {arm.name}; give more seconds")
    return float(found[1])


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
    join = next((node for node in nodes_of(plans[0]["Plan"]) if node["Node Type"] == "Hash Join"), None)
    if join is None:
        raise BenchError(f"the query of {label} was not executed as a hash join; choose another size")
    return join
