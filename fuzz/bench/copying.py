"""COPY FROM a file into a table: the gain of counted duplicates in resource owners.

Each slot of COPY's batch of 1000 tuples references the same tuple descriptor, so gains should peak at 1000 rows. The
table has one integer column, because only the number of rows should matter. It is emptied after each measurement, so
that the kernel writes none of it during the other arm's measurement. The costs of pgbench's first transactions (caches
of a new backend) are the same share of the time on both arms, so they cancel out in the ratio. The time of connecting
is not part of pgbench's figure.

In flavor `release`, glibc keeps freed memory. Users have glibc's defaults, which the second bench measures. They also
have logged tables, which the third one measures; the mail's are unlogged.
"""

from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from fuzz.bench.bench import NO_MAIL, UNDISTURBED, Bench, Mail, Point, connected
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
    persistence: ClassVar[str] = "UNLOGGED"  # of the table
    axes = MappingProxyType({"rows": _ROWS, "clients": _CLIENTS})
    rounds = 16
    headlines: ClassVar[Sequence[Point]] = ((10, 1), (1000, 1), (1000, 4), (1000, 8), (100000, 1))
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

    def data(self, points: Sequence[Point]) -> str:
        """Return the files' numbers of rows."""
        return f"{self.persistence} {_numbers(points)}"

    def fill(self, arm: Arm, points: Sequence[Point]) -> None:
        """Create the table, and write the files beside the server's data."""
        with connected(arm) as connection:
            connection.execute(f"CREATE {self.persistence} TABLE bench_copy (a int)")
            for rows in _numbers(points):
                connection.execute(f"COPY (SELECT generate_series(1, {rows})) TO '{_file(arm, rows)}'")
            connection.execute("CHECKPOINT")

    def prepare(self, arm: Arm, points: Sequence[Point]) -> None:
        """Copy each file once."""
        with connected(arm) as connection:
            for rows in _numbers(points):
                connection.execute(f"COPY bench_copy FROM '{_file(arm, rows)}'")
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


class DefaultAllocatorBench(CopyBench):
    """The same with the default settings of glibc's allocator."""

    name = "copy_default_allocator"
    environment = MappingProxyType({})
    headlines = ((10, 1), (1000, 1), (100000, 1))


class LoggedTableBench(CopyBench):
    """The same with a logged table. No figures of the mail."""

    name = "copy_logged"
    persistence = ""
    mail = NO_MAIL
    headlines = ()


def _numbers(points: Sequence[Point]) -> list[int]:
    return sorted({rows for rows, _ in points})


def _file(arm: Arm, rows: int) -> Path:
    return arm.cluster.data / f"bench_copy_{rows}"
