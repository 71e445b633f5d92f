"""COPY FROM a file into an unlogged table: the gain of counted duplicates in resource owners.

Each slot of COPY's batch of 1000 tuples references the same tuple descriptor, so gains should peak at 1000 rows. The
table has one integer column, because only the number of rows should matter. It is emptied after each measurement, so
that the kernel writes none of it during the other arm's measurement. The costs of pgbench's first transactions (caches
of a new backend) are the same share of the time on both arms, so they cancel out in the ratio. The time of connecting
is not part of pgbench's figure.
"""

from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

from fuzz.bench.bench import UNDISTURBED, Bench, Mail, Point, connected
from fuzz.bench.measurement import transactions_a_second
from fuzz.servers.arm import Arm

_ROWS = (10, 100, 1000, 10000, 100000)
_CLIENTS = (1, 4, 8)
_PERCENT = (  # patched / master: a line per number of rows, a column per number of clients
    (101, 100, 99),
    (121, 114, 109),
    (403, 379, 286),
    (140, 135, 119),
    (106, 105, 102),
)


class CopyBench(Bench):
    """Transactions per second of pgbench, each with one COPY. A ratio above 1 is a gain."""

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
    # PostgreSQL's defaults, which differ from a fuzzing cluster's, except for enough memory to keep the table and for
    # background work: checkpoints and autovacuum.
    settings = MappingProxyType(
        {
            **UNDISTURBED,
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
        """Return the point as text."""
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
        """Return pgbench's transactions per second. Raises BenchError."""
        rows, clients = point
        script = f"COPY bench_copy FROM '{_file(arm, rows)}';\n"
        tps = transactions_a_second(arm, "-n", "-f", "-", clients=clients, seconds=seconds, stdin=script)
        with connected(arm) as connection:
            connection.execute("TRUNCATE bench_copy")
        return tps


def _file(arm: Arm, rows: int) -> Path:
    return arm.cluster.data / f"bench_copy_{rows}"
