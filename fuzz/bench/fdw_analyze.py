"""The mail's ANALYZE test: a table, directly and through a foreign server, by each method, with several targets.

If an arm's postgres_fdw has no methods, all of them stand for reading all rows. So the ratio to such an arm is the gain
of the mail's patch.
"""

import time
from collections.abc import Mapping, Sequence
from statistics import median
from types import MappingProxyType
from typing import Final

from fuzz.bench import fdw
from fuzz.bench.bench import Bench, Mail, Point, Samples, connected
from fuzz.servers.arm import Arm

LOCAL: Final = "local"
METHODS: Final = (LOCAL, *fdw.METHODS)
TARGETS: Final = (10, 100, 1000, 10000)
_OFF: Final = METHODS.index("off") + 1
# "about 3x faster": 10 million rows, methods that read all of them, samples above some percent
_TO_LOCAL: Final[Mapping[Point, float]] = MappingProxyType(
    {
        (10_000_000, target, METHODS.index(method) + 1): 1 / 3
        for target in (1000, 10000)
        for method in ("random", "bernoulli")
    }
)


class FdwAnalyzeBench(Bench):
    """Milliseconds of ANALYZE, so a ratio below 1 is a gain. Also the arm's own ratios to `off` and `local`."""

    name = "fdw_analyze"
    unit = "ms"
    axes = MappingProxyType({"rows": fdw.ROWS, "target": TARGETS, "method": tuple(range(1, len(METHODS) + 1))})
    mail = Mail(fdw.SUBJECT, fdw.MESSAGE_ID, MappingProxyType({}))  # its results are pictures
    settings = fdw.SETTINGS

    def label(self, point: Point) -> str:
        """Return the point as text."""
        rows, target, method = point
        return f"{rows} rows, target {target}, {METHODS[method - 1]}"

    def prepare(self, arm: Arm, points: Sequence[Point]) -> None:
        """Fill the tables, create a foreign table for each method, and analyze each once."""
        with connected(arm) as connection:
            fdw.fill(connection, arm, sorted({rows for rows, _, _ in points}))
            for rows, method in sorted({(rows, method) for rows, _, method in points}):
                if METHODS[method - 1] != LOCAL:
                    fdw.foreign_table(connection, _table(rows, method), fdw.near(rows), METHODS[method - 1])
                connection.execute(f"ANALYZE {_table(rows, method)}")

    def measure(self, arm: Arm, point: Point, seconds: int) -> float:
        """Return milliseconds per ANALYZE: the mean of all runs within the time. Raises BenchError."""
        rows, target, method = point
        with connected(arm) as connection:
            connection.execute(f"SET default_statistics_target = {target}")
            connection.execute(f"SELECT FROM {_table(rows, method)} LIMIT 1")  # opens the connection
            start, number = time.perf_counter(), 0
            while not number or time.perf_counter() - start < seconds:
                connection.execute(f"ANALYZE {_table(rows, method)}")
                number += 1
            return (time.perf_counter() - start) / number * 1000

    def extras(self, point: Point, arm: str, against: str, samples: Samples) -> Mapping[str, float]:
        """Return the ratios to `off` and `local` on the same arm, and the mail's ratio to `local` if it has one."""
        rows, target, method = point
        figures = {}
        for name, of in (("to off", _OFF), ("to local", 1)):
            other = samples.get(((rows, target, of), arm))
            if other:
                figures[name] = median(samples[point, arm]) / median(other)
        if (rows, target, method) in _TO_LOCAL:
            figures["mail to local"] = _TO_LOCAL[rows, target, method]
        return figures


def _table(rows: int, method: int) -> str:
    return fdw.near(rows) if METHODS[method - 1] == LOCAL else f"far_{rows}_{METHODS[method - 1]}"
