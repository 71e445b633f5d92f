"""COPY FROM a file into an unlogged table: what counting duplicates in resource owners is for.

Each slot of COPY's batch of 1000 tuples references the same tuple descriptor, so gains should peak at 1000 rows.
The table has one integer column, since nothing but the rows' number should matter. It is emptied after each
measurement, so that the kernel has nothing of it left to write while the other arm is measured.

What pgbench's first transactions pay for (a new backend's caches) is the same share of the time on both arms, so it
drops out of the ratio; connecting is not in pgbench's figure anyway.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

from fuzz.bench.bench import Bench, BenchError, Mail, Point, connected
from fuzz.servers.arm import Arm

_TPS = re.compile(r"^tps = ([0-9.]+)", re.MULTILINE)
_ROWS = (10, 100, 1000, 10000, 100000)
_CLIENTS = (1, 4, 8)
_PERCENT = (  # patched / master, a line for each number of rows, a column for each number of clients
    (101, 100, 99),
    (121, 114, 109),
    (403, 379, 286),
    (140, 135, 119),
    (106, 105, 102),
)


class CopyBench(Bench):
    """Transactions a second of pgbench, each one COPY; a ratio above 1 is a gain."""

    name = "copy"
    unit = "tps"
    axes = MappingProxyType({"rows": _ROWS, "clients": _CLIENTS})
    mail = Mail(
        "Optimizing ResouceOwner to speed up COPY",
        "84f20db7-7d57-4dc0-8144-7e38e0bbe75d@vondra.me",
        MappingProxyType(
            {
                (rows, clients): percent / 100
                for rows, line in zip(_ROWS, _PERCENT, strict=True)
                for clients, percent in zip(_CLIENTS, line, strict=True)
            }
        ),
    )
    # PostgreSQL's defaults, which differ from a fuzzing cluster's, but for memory enough to keep the table, and for
    # what would add work of its own: checkpoints and autovacuum.
    settings = MappingProxyType(
        {
            "shared_preload_libraries": "",
            "shared_buffers": "1GB",
            "dynamic_shared_memory_type": "posix",
            "max_wal_size": "8GB",
            "autovacuum": "off",
            "fsync": "on",
            "full_page_writes": "on",
            "synchronous_commit": "on",
            "jit": "on",
            "max_connections": "100",
            "max_locks_per_transaction": "64",
            "max_prepared_transactions": "0",
        }
    )

    def label(self, point: Point) -> str:
        """Return the point in words."""
        rows, clients = point
        return f"{rows} row{'s' * (rows > 1)}, {clients} client{'s' * (clients > 1)}"

    def prepare(self, arm: Arm, points: Sequence[Point]) -> None:
        """Write the files beside the server's data, and copy each once."""
        with connected(arm) as connection:
            connection.execute("CREATE UNLOGGED TABLE IF NOT EXISTS bench_copy (a int)")
            for rows in sorted({rows for rows, _ in points}):
                file = _file(arm, rows)
                connection.execute(f"COPY (SELECT generate_series(1, {rows})) TO '{file}'")
                connection.execute(f"COPY bench_copy FROM '{file}'")
            connection.execute("TRUNCATE bench_copy")
            connection.execute("CHECKPOINT")

    def measure(self, arm: Arm, point: Point, seconds: int) -> float:
        """Return pgbench's transactions a second. Raises BenchError."""
        rows, clients = point
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
            script.write(f"COPY bench_copy FROM '{_file(arm, rows)}';\n")
            script.flush()
            tps = _pgbench(arm, script.name, clients, seconds)
        with connected(arm) as connection:
            connection.execute("TRUNCATE bench_copy")
        return tps


def _file(arm: Arm, rows: int) -> Path:
    return arm.cluster.data / f"bench_copy_{rows}"


def _pgbench(arm: Arm, script: str, clients: int, seconds: int) -> float:
    processors = len(os.sched_getaffinity(0))
    command: list[str | Path] = [arm.build.bindir / "pgbench", "-n", "-f", script, "-T", str(seconds)]
    command += ["-c", str(clients), "-j", str(min(clients, processors))]
    command += ["-h", arm.cluster.socket_dir, "-p", str(arm.cluster.port), "-U", "postgres", "postgres"]
    done = subprocess.run(command, capture_output=True, text=True, env=arm.cluster.environment())
    found = _TPS.search(done.stdout)
    if done.returncode or found is None:
        said = done.stderr.strip().splitlines()
        raise BenchError(f"pgbench failed on arm {arm.name}: {said[-1] if said else f'exit status {done.returncode}'}")
    return float(found[1])
