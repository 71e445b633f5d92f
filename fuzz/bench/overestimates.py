"""Hash joins whose inner side has far fewer rows than the planner expects: the cost of preparations for too many rows.

Planned batches, buckets and Bloom filters follow the estimate. An overestimate is a loss for which the mails have no
figures. The patches may cost 2 % of time and memory at most, so a ratio above 1.02 is a loss. A hash table of one
process has the rows of a function in PL/pgSQL, whose `ROWS` declares the estimate. No function scan is parallel, so a
hash table of several processes has those of a table with a wrong `pg_class.reltuples`. The planner expects even more
rows of the outer side. It has no statistics of the outer key, an expression, nor of a function's column. So it hashes
the few rows.

The peak memory is the largest resident set of the session's process. Shared buffers are part of it, so they are few,
and the same on all arms. With several processes, it depends on how many batches each of them happens to load, so it is
not compared; EXPLAIN has the memory of the shared hash table.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

import psycopg

from fuzz.bench.bench import UNDISTURBED, Bench, BenchError, Connection, Mail, Point, Samples, connected
from fuzz.bench.bloom import BloomBench
from fuzz.bench.buckets import BucketsBench
from fuzz.bench.measurement import explained_join, milliseconds
from fuzz.servers.arm import Arm

_OUTER = 1_000_000  # rows
_OUTER_EXPECTED = 10**11  # rows; more than any inner side
_MOST_WORKERS = 8  # for a table's scan; max_parallel_workers_per_gather limits them further
_PEAK = re.compile(r"([0-9]+) kB max resident size")


@dataclass(frozen=True, slots=True)
class _Used:
    """Batches, and memory in kB: of the hash table in EXPLAIN, and of the process."""

    batches: int
    table: int
    peak: int


class OverestimatedBucketsBench(Bench):
    """Milliseconds of a join with enough memory for a single batch of up to ten times the rows.

    Points are rows, expected rows, and processes, which share a hash table (Parallel Hash) if there are several.
    `outer` is the number of the other side's rows; each row of the hash table has a match there, if it has as many.
    """

    name = "overestimated_buckets"
    unit = "ms"
    axes = MappingProxyType({"rows": (1_000, 100_000), "expected": (10**6, 10**7, 10**9), "processes": (1, 3)})
    typical_seconds = 5
    beside: ClassVar[Sequence[str]] = BucketsBench.beside
    mail: ClassVar[Mail] = replace(BucketsBench.mail, ratios=MappingProxyType({}))
    settings: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            **UNDISTURBED,
            "shared_buffers": "16MB",
            "jit": "off",
            "work_mem": "256MB",
            "hash_mem_multiplier": "1",
            "enable_mergejoin": "off",
            "enable_nestloop": "off",
        }
    )

    def __init__(self, outer: int = _OUTER) -> None:
        self._outer = outer
        self._used: dict[tuple[str, Point], _Used] = {}

    @property
    def parameters(self) -> str:
        """Return the number of outer rows."""
        return str(self._outer)

    def label(self, point: Point) -> str:
        """Return the point as text."""
        rows, expected, processes = point
        shared = f", {processes} processes" if processes > 1 else ""
        return f"{rows} rows, {expected} expected{shared}"

    def fill(self, arm: Arm, points: Sequence[Point]) -> None:
        """Fill the outer table, and create a table and a function for each number of rows and estimate."""
        with connected(arm) as connection:
            _create_table(connection, "outer_rows", self._outer)
            for rows, expected in sorted({(rows, expected) for rows, expected, _ in points}):
                name = _name(rows, expected)
                _create_table(connection, name, rows)
                connection.execute(
                    f"CREATE FUNCTION {name}() RETURNS TABLE (id int, val text) LANGUAGE plpgsql STABLE ROWS {expected}"
                    f" AS 'BEGIN RETURN QUERY SELECT t.id, t.val FROM {name} AS t; END'"
                )
            connection.execute("VACUUM ANALYZE")
            _expect(connection, "outer_rows", _OUTER_EXPECTED)
            for rows, expected, _ in points:
                _expect(connection, _name(rows, expected), expected)
            connection.execute("CHECKPOINT")

    def prepare(self, arm: Arm, points: Sequence[Point]) -> None:
        """Record the batches and the memory of each point once, in a session of its own."""
        for point in points:
            with connected(arm) as connection:
                peak = _peak_memory(connection, _planned(connection, point))
                join = explained_join(connection, _planned(connection, point), self.label(point))
                table = join["Plans"][1]
                (scan,) = table["Plans"]
                hashed = scan.get("Function Name", scan.get("Relation Name"))
                if hashed != _name(*point[:2]) or table["Parallel Aware"] != (point[2] > 1):
                    shared = "with" if table["Parallel Aware"] else "without"
                    raise BenchError(
                        f"{self.label(point)}: the plan hashes {hashed} {shared} Parallel Hash; "
                        "choose other rows or estimates"
                    )
                self._used[arm.name, point] = _Used(table["Hash Batches"], table["Peak Memory Usage"], peak)

    def measure(self, arm: Arm, point: Point, seconds: int) -> float:
        """Return milliseconds per query: the mean of all runs within the time. Raises BenchError."""
        with connected(arm) as connection:
            return milliseconds(connection, _planned(connection, point), seconds)

    def extras(self, point: Point, arm: str, against: str, samples: Samples) -> Mapping[str, float]:
        """Return the ratios of memory of hash table and process; both arms' batches, and kB of the same."""
        mine, theirs = self._used[arm, point], self._used[against, point]
        alone = point[2] == 1
        figures = {"peak": mine.peak / theirs.peak} if alone else {}
        figures["table"] = mine.table / theirs.table
        for prefix, used in (("", mine), (f"{against} ", theirs)):
            if alone:
                figures[f"{prefix}peak kB"] = float(used.peak)
            figures[f"{prefix}table kB"] = float(used.table)
            figures[f"{prefix}batches"] = float(used.batches)
        return figures


class OverestimatedBloomBench(OverestimatedBucketsBench):
    """The same with little memory, so that many batches are expected, and a Bloom filter for their rows."""

    name = "overestimated_bloom"
    beside = BloomBench.beside
    mail = replace(BloomBench.mail, ratios=MappingProxyType({}))
    settings = MappingProxyType({**OverestimatedBucketsBench.settings, "work_mem": "64MB"})


def _name(rows: int, expected: int) -> str:
    """Return the name of a table, and of a function that returns its rows."""
    return f"rows_{rows}_of_{expected}"


def _create_table(connection: Connection, name: str, rows: int) -> None:
    connection.execute(f"CREATE UNLOGGED TABLE {name} (id int, val text) WITH (parallel_workers = {_MOST_WORKERS})")
    connection.execute(f"INSERT INTO {name} SELECT i, md5(i::text) FROM generate_series(1, {rows}) AS s (i)")


def _expect(connection: Connection, table: str, rows: int) -> None:
    """Have the planner expect this number of a table's rows."""
    connection.execute(f"UPDATE pg_class SET reltuples = {rows} WHERE relname = '{table}'")


def _planned(connection: Connection, point: Point) -> str:
    """Set the number of workers, and return the point's query."""
    rows, expected, processes = point
    connection.execute(f"SET max_parallel_workers_per_gather = {processes - 1}")
    few = _name(rows, expected) if processes > 1 else f"{_name(rows, expected)}()"
    return f"SELECT count(i.val), count(o.val) FROM outer_rows AS o JOIN {few} AS i ON i.id = o.id + 0"


def _peak_memory(connection: Connection, query: str) -> int:
    """Run a query, and return the largest resident set that the session's process has had, in kB.

    Raises BenchError on systems where the server does not report it.
    """
    details: list[str] = []

    def listen(notice: psycopg.errors.Diagnostic) -> None:
        details.append(notice.message_detail or "")

    connection.add_notice_handler(listen)
    connection.execute("SET log_executor_stats = on")
    connection.execute("SET client_min_messages = log")
    connection.execute(query)
    connection.execute("RESET client_min_messages")
    connection.execute("RESET log_executor_stats")
    connection.remove_notice_handler(listen)
    found = _PEAK.findall("\n".join(details))
    if not found:
        raise BenchError("the server reports no memory of its processes; run the bench on Linux")
    return max(map(int, found))
