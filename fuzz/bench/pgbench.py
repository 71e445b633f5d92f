"""Execution of the pgbench of an arm's own build."""

import os
import re

from fuzz.bench.bench import BenchError
from fuzz.errors import last_line
from fuzz.servers.arm import Arm

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
