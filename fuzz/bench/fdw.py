"""Benches of the mail on remote samples for ANALYZE: a table of its width, and a foreign server that leads back.

The mail's ANALYZE test is of a table, directly and through a foreign server, by each method, with several targets. If
an arm's postgres_fdw has no methods, all of them stand for reading all rows. So the ratio to such an arm is the gain of
the mail's patch.

The mail's sampling test is the cost of reading a share of a table's rows, and of transferring them. A sampling query is
put into a view with OFFSET 0, so that it runs on the table's server. The view is read directly or through a foreign
table. EXPLAIN ANALYZE transfers the rows to the session, and no further. All arms should have equal results here,
because they differ only in ANALYZE's use of samples.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from statistics import median
from types import MappingProxyType
from typing import Final

import psycopg
from psycopg import sql

from fuzz.bench.bench import UNDISTURBED, Bench, Connection, Mail, Point, Samples, connected
from fuzz.bench.measurement import milliseconds
from fuzz.servers.arm import Arm

SUBJECT: Final = "postgres_fdw: using TABLESAMPLE to collect remote sample"
MESSAGE_ID: Final = "03182011-10a4-97b4-7c70-d99aa1c11eed@enterprisedb.com"
ROWS: Final = (10_000, 10_000_000)  # the mail also has 100 million, which do not fit into memory
_CLAIM: Final = (  # its results are pictures
    "ANALYZE of a foreign table takes as long as that of a local one, or less; no fraction is slower than all rows"
)
METHODS: Final = ("off", "random", "system", "bernoulli", "auto")

SETTINGS: Final = MappingProxyType({**UNDISTURBED, "jit": "off", "max_parallel_workers_per_gather": "0"})

COLUMNS: Final = "id int8, a int4, b int4, c text"


def near(rows: int) -> str:
    """Return the name of the table with `rows` rows."""
    return f"near_{rows}"


def fill(arm: Arm, sizes: Sequence[int]) -> None:
    """Create the tables, with about 180 bytes per row."""
    with connected(arm) as connection:
        for rows in sizes:
            _fill_one(connection, rows)
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def _fill_one(connection: Connection, rows: int) -> None:
    connection.execute(f"CREATE UNLOGGED TABLE {near(rows)} ({COLUMNS})")
    values = "g, g % 1000, (g::int8 * g % 100003)::int4, repeat(md5(g::text), 4)"
    connection.execute(f"INSERT INTO {near(rows)} SELECT {values} FROM generate_series(1, {rows}) AS g")


def foreign_server(connection: Connection, arm: Arm) -> None:
    """Create a foreign server that leads to the arm's own tables."""
    connection.execute("CREATE EXTENSION IF NOT EXISTS postgres_fdw")
    connection.execute(
        sql.SQL(
            "CREATE SERVER loop FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host {}, port {}, dbname 'postgres')"
        ).format(sql.Literal(str(arm.cluster.socket_dir)), sql.Literal(str(arm.cluster.port)))
    )
    connection.execute("CREATE USER MAPPING FOR CURRENT_USER SERVER loop OPTIONS (user 'postgres')")


def _sizes(points: Sequence[Point]) -> list[int]:
    return sorted({point[0] for point in points})


def foreign_table(connection: Connection, name: str, there: str, method: str | None = None) -> None:
    """Create a foreign table, without the method if the arm's postgres_fdw lacks the option."""
    made = f"CREATE FOREIGN TABLE {name} ({COLUMNS}) SERVER loop OPTIONS (table_name '{there}'"
    if method is not None:
        with suppress(psycopg.errors.FdwInvalidOptionName):
            connection.execute(f"{made}, analyze_sampling '{method}')")
            return
    connection.execute(f"{made})")


LOCAL: Final = "local"
ANALYZE_METHODS: Final = (LOCAL, *METHODS)
TARGETS: Final = (10, 100, 1000, 10000)
_OFF: Final = ANALYZE_METHODS.index("off") + 1
# "about 3x faster": 10 million rows, methods that read all of them, samples above some percent
_TO_LOCAL: Final[Mapping[Point, float]] = MappingProxyType(
    {
        (10_000_000, target, ANALYZE_METHODS.index(method) + 1): 1 / 3
        for target in (1000, 10000)
        for method in ("random", "bernoulli")
    }
)


class FdwAnalyzeBench(Bench):
    """Milliseconds of ANALYZE, so a ratio below 1 is a gain. Also the arm's own ratios to `off` and `local`."""

    name = "fdw_analyze"
    unit = "ms"
    axes = MappingProxyType({"rows": ROWS, "target": TARGETS, "method": tuple(range(1, len(ANALYZE_METHODS) + 1))})
    mail = Mail(SUBJECT, MESSAGE_ID, MappingProxyType({}), claim=_CLAIM)
    settings = SETTINGS
    typical_seconds = 4
    headlines = tuple((1_000_000, 100, ANALYZE_METHODS.index(each) + 1) for each in (LOCAL, "off", "random", "system"))
    beside = ("upstream",)  # PostgreSQL's own solution

    def data(self, points: Sequence[Point]) -> str:
        """Return the tables' numbers of rows."""
        return str(_sizes(points))

    def label(self, point: Point) -> str:
        """Return the point as text."""
        rows, target, method = point
        return f"{rows} rows, target {target}, {ANALYZE_METHODS[method - 1]}"

    def fill(self, arm: Arm, points: Sequence[Point]) -> None:
        """Fill the tables."""
        fill(arm, _sizes(points))

    def prepare(self, arm: Arm, points: Sequence[Point]) -> None:
        """Create a foreign table for each method, and analyze each once."""
        with connected(arm) as connection:
            foreign_server(connection, arm)
            for rows, method in sorted({(rows, method) for rows, _, method in points}):
                if ANALYZE_METHODS[method - 1] != LOCAL:
                    foreign_table(connection, _table(rows, method), near(rows), ANALYZE_METHODS[method - 1])
                connection.execute(f"ANALYZE {_table(rows, method)}")

    def measure(self, arm: Arm, point: Point, seconds: int) -> float:
        """Return milliseconds per ANALYZE: the mean of all runs within the time. Raises BenchError."""
        rows, target, method = point
        with connected(arm) as connection:
            connection.execute(f"SET default_statistics_target = {target}")
            connection.execute(f"SELECT FROM {_table(rows, method)} LIMIT 1")  # opens the connection
            return milliseconds(connection, f"ANALYZE {_table(rows, method)}", seconds)

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
    return near(rows) if ANALYZE_METHODS[method - 1] == LOCAL else f"far_{rows}_{ANALYZE_METHODS[method - 1]}"


FULL: Final = "full"
SAMPLING_METHODS: Final = (FULL, "random", "system", "bernoulli")
PERCENTS: Final = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)
_THROUGH: Final = ("direct", "foreign")
_MAIL: Final = MappingProxyType({"mail us/row read": 0.2, "mail us/row sent": 1.5})  # upper bounds, on one machine


class FdwSamplingBench(Bench):
    """Milliseconds per query. Also microseconds per row of the table, and per transferred row."""

    name = "fdw_sampling"
    unit = "ms"
    axes = MappingProxyType({"rows": ROWS, "percent": PERCENTS, "method": (1, 2, 3, 4), "through": (1, 2)})
    mail = Mail(SUBJECT, MESSAGE_ID, MappingProxyType({}), claim=_CLAIM)
    settings = SETTINGS
    typical_seconds = 2
    beside = ("upstream",)

    def data(self, points: Sequence[Point]) -> str:
        """Return the tables' numbers of rows."""
        return str(_sizes(points))

    def points(self, chosen: Mapping[str, Sequence[int]]) -> list[Point]:
        """Return the grid, with one percentage for the method that reads all rows. Raises BenchError."""
        grid = super().points(chosen)
        return list(
            dict.fromkeys((rows, 100 if method == 1 else percent, method, by) for rows, percent, method, by in grid)
        )

    def label(self, point: Point) -> str:
        """Return the point as text."""
        rows, percent, method, through = point
        return f"{rows} rows, {SAMPLING_METHODS[method - 1]} {percent} %, {_THROUGH[through - 1]}"

    def fill(self, arm: Arm, points: Sequence[Point]) -> None:
        """Fill the tables."""
        fill(arm, _sizes(points))

    def prepare(self, arm: Arm, points: Sequence[Point]) -> None:
        """Create views and foreign tables."""
        with connected(arm) as connection:
            foreign_server(connection, arm)
            for rows, percent, method in sorted({point[:3] for point in points}):
                view = _relation((rows, percent, method, 1))
                connection.execute(f"CREATE VIEW {view} AS SELECT * FROM {_sampled(rows, percent, method)} OFFSET 0")
                foreign_table(connection, _relation((rows, percent, method, 2)), view)

    def measure(self, arm: Arm, point: Point, seconds: int) -> float:
        """Return milliseconds per query: the mean of all runs within the time. Raises BenchError."""
        with connected(arm) as connection:
            query = f"EXPLAIN (ANALYZE, TIMING OFF) SELECT * FROM {_relation(point)}"
            connection.execute(query)
            return milliseconds(connection, query, seconds)

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
    return f"{_THROUGH[through - 1]}_{SAMPLING_METHODS[method - 1]}_{percent}_{rows}"


def _sampled(rows: int, percent: int, method: int) -> str:
    table, name = near(rows), SAMPLING_METHODS[method - 1]
    if name == FULL:
        return table
    return f"{table} WHERE random() < {percent / 100}" if name == "random" else f"{table} TABLESAMPLE {name}({percent})"
