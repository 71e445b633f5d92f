"""pgbench's own scripts on a partitioned pgbench_accounts: planning must not slow down short transactions.

There is one client, because more would compete for the processors. Nothing waits for a disk (fsync is off), so planning
is the largest possible share of a transaction. Each number of partitions has its own database.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from fuzz.bench.bench import UNDISTURBED, Bench, Point, Samples, connected
from fuzz.bench.measurement import run_pgbench, transactions_a_second
from fuzz.bench.planning import planning_mail, ratios
from fuzz.servers.arm import Arm

_SCRIPTS = MappingProxyType({1: "select-only", 2: "tpcb-like"})  # pgbench's names (option -b)
_MAIL = MappingProxyType(  # tps of master and of v3, v5, v6, v7, by partitions; the mail does not name the script
    {
        1: (7617, (7510, 7484, 7599, 7561)),
        2: (7613, (7487, 7503, 7609, 7560)),
        4: (7559, (7497, 7453, 7560, 7553)),
        8: (7506, (7429, 7405, 7523, 7503)),
        16: (7584, (7481, 7466, 7558, 7508)),
        32: (7556, (7456, 7448, 7558, 7521)),
        64: (7555, (7452, 7435, 7541, 7504)),
        128: (7542, (7430, 7442, 7558, 7517)),
    }
)


class OltpBench(Bench):
    """Transactions per second of pgbench, as in the mail. A ratio above 1 is a gain."""

    name = "pgbench"
    unit = "tps"
    axes = MappingProxyType({"script": tuple(_SCRIPTS), "partitions": tuple(_MAIL)})
    mail = planning_mail(ratios({(script, size): figures for script in _SCRIPTS for size, figures in _MAIL.items()}))
    rounds = 7
    settings = MappingProxyType(
        {
            **UNDISTURBED,
            "jit": "off",
            "fsync": "off",
        }
    )

    def label(self, point: Point) -> str:
        """Return the point as text."""
        script, partitions = point
        return f"{_SCRIPTS[script]}, {partitions} partition{'s' * (partitions > 1)}"

    def data(self, points: Sequence[Point]) -> str:
        """Return the numbers of partitions."""
        return str(_numbers(points))

    def fill(self, arm: Arm, points: Sequence[Point]) -> None:
        """Fill pgbench's tables: 100,000 accounts in hash partitions."""
        for partitions in _numbers(points):
            with connected(arm) as connection:
                connection.execute(f"CREATE DATABASE {_database(partitions)}")
            options = ("--initialize", "--quiet", f"--partitions={partitions}", "--partition-method=hash")
            run_pgbench(arm, *options, database=_database(partitions))

    def prepare(self, arm: Arm, points: Sequence[Point]) -> None:
        """Run each script once."""
        for script, partitions in points:
            options = ("-n", "-t", "1", "-b", _SCRIPTS[script])
            run_pgbench(arm, *options, database=_database(partitions))

    def measure(self, arm: Arm, point: Point, seconds: int) -> float:
        """Return pgbench's transactions per second. Raises BenchError."""
        script, partitions = point
        return transactions_a_second(arm, "-b", _SCRIPTS[script], seconds=seconds, database=_database(partitions))

    def extras(self, point: Point, arm: str, against: str, samples: Samples) -> Mapping[str, float]:
        """Return the mail's transactions per second of master."""
        _, partitions = point
        return {"mail master": _MAIL[partitions][0]} if partitions in _MAIL else {}


def _numbers(points: Sequence[Point]) -> list[int]:
    return sorted({partitions for _, partitions in points})


def _database(partitions: int) -> str:
    return f"partitions_{partitions}"
