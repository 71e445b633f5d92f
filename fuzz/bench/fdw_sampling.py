"""The mail's sampling test: the cost of reading a share of a table's rows, and of transferring them.

A sampling query is put into a view with OFFSET 0, so that it runs on the table's server. The view is read directly or
through a foreign table. EXPLAIN ANALYZE transfers the rows to the session, and no further. All arms should have equal
results here, because they differ only in ANALYZE's use of samples.
"""

import time
from collections.abc import Mapping, Sequence
from statistics import median
from types import MappingProxyType
from typing import Final

from fuzz.bench import fdw
from fuzz.bench.bench import Bench, Mail, Point, Samples, connected
from fuzz.servers.arm import Arm

FULL: Final = "full"
METHODS: Final = (FULL, "random", "system", "bernoulli")
PERCENTS: Final = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)
_THROUGH: Final = ("direct", "foreign")
_MAIL: Final = MappingProxyType({"mail us/row read": 0.2, "mail us/row sent": 1.5})  # upper bounds, on one machine


class FdwSamplingBench(Bench):
    """Milliseconds per query. Also microseconds per row of the table, and per transferred row."""

    name = "fdw_sampling"
    unit = "ms"
    axes = MappingProxyType({"rows": fdw.ROWS, "percent": PERCENTS, "method": (1, 2, 3, 4), "through": (1, 2)})
    mail = Mail(fdw.SUBJECT, fdw.MESSAGE_ID, MappingProxyType({}))  # its results are pictures
    settings = fdw.SETTINGS

    def points(self, chosen: Mapping[str, Sequence[int]]) -> list[Point]:
        """Return the grid, with one percentage for the method that reads all rows. Raises BenchError."""
        grid = super().points(chosen)
        return list(
            dict.fromkeys((rows, 100 if method == 1 else percent, method, by) for rows, percent, method, by in grid)
        )

    def label(self, point: Point) -> str:
        """Return the point as text."""
        rows, percent, method, through = point
        return f"{rows} rows, {METHODS[method - 1]} {percent} %, {_THROUGH[through - 1]}"

    def prepare(self, arm: Arm, points: Sequence[Point]) -> None:
        """Fill the tables, and create views and foreign tables."""
        with connected(arm) as connection:
            fdw.fill(connection, arm, sorted({rows for rows, *_ in points}))
            for rows, percent, method in sorted({point[:3] for point in points}):
                view = _relation((rows, percent, method, 1))
                connection.execute(f"CREATE VIEW {view} AS SELECT * FROM {_sampled(rows, percent, method)} OFFSET 0")
                fdw.foreign_table(connection, _relation((rows, percent, method, 2)), view)

    def measure(self, arm: Arm, point: Point, seconds: int) -> float:
        """Return milliseconds per query: the mean of all runs within the time. Raises BenchError."""
        with connected(arm) as connection:
            query = f"EXPLAIN (ANALYZE, TIMING OFF) SELECT * FROM {_relation(point)}"
            connection.execute(query)
            start, number = time.perf_counter(), 0
            while not number or time.perf_counter() - start < seconds:
                connection.execute(query)
                number += 1
            return (time.perf_counter() - start) / number * 1000

    def extras(self, point: Point, arm: str, against: str, samples: Samples) -> Mapping[str, float]:
        """Return the costs per row, the ratio to reading everything by the same path, and the mail's costs."""
        rows, percent, _, through = point
        mine = median(samples[point, arm])
        figures = {}
        if full := samples.get(((rows, 100, 1, through), arm)):
            figures["to full"] = mine / median(full)
        if through == 1:
            figures["us/row read"] = mine * 1000 / rows
            return figures | {"mail us/row read": _MAIL["mail us/row read"]}
        if direct := samples.get(((*point[:3], 1), arm)):
            figures["us/row sent"] = (mine - median(direct)) * 1000 / (rows * percent / 100)
        return figures | {"mail us/row sent": _MAIL["mail us/row sent"]}


def _relation(point: Point) -> str:
    rows, percent, method, through = point
    return f"{_THROUGH[through - 1]}_{METHODS[method - 1]}_{percent}_{rows}"


def _sampled(rows: int, percent: int, method: int) -> str:
    table, name = fdw.near(rows), METHODS[method - 1]
    if name == FULL:
        return table
    return f"{table} WHERE random() < {percent / 100}" if name == "random" else f"{table} TABLESAMPLE {name}({percent})"
