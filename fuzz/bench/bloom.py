"""Hash joins of many batches: the gain of a Bloom filter over the inner side.

Few rows of the outer side have a match. So most rows of later batches are written to a temporary file and read again
for nothing. The share of rows with a match is the share of `dim` that the query's condition keeps. Rows and work_mem
are scaled down together, which preserves the mail's numbers of batches. Two more figures do not depend on the disk: the
data written for the outer side, and the *floor*, which is the same query with memory for one batch.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from types import MappingProxyType
from typing import Self

from fuzz.bench.bench import UNDISTURBED, Bench, Connection, Mail, Point, Samples, connected
from fuzz.bench.measurement import explained_join, milliseconds
from fuzz.servers.arm import Arm
from fuzz.servers.limits import memory_limited
from oracles.explain.nodes import Node

FLOOR = 1 << 20  # MB of work_mem, enough for a single batch at any scale


class Join(StrEnum):
    """The kind of join; the mail's table is of inner joins."""

    INNER = "inner"
    LEFT = "left"
    FULL = "full"
    ANTI = "anti"


_QUERIES = MappingProxyType(
    {
        Join.INNER: "SELECT count(fval) FROM fact JOIN dim ON fact.id = dim.id AND dval < '{limit}'",
        Join.LEFT: "SELECT count(fval), count(dval) FROM fact LEFT JOIN dim ON fact.id = dim.id AND dval < '{limit}'",
        Join.FULL: "SELECT count(fval), count(dval) FROM fact FULL JOIN"
        " (SELECT * FROM dim WHERE dval < '{limit}') AS dim ON fact.id = dim.id",
        Join.ANTI: "SELECT count(fval) FROM fact WHERE NOT EXISTS"
        " (SELECT FROM dim WHERE fact.id = dim.id AND dval < '{limit}')",
    }
)
_DIM, _FACT = 10_000_000, 100_000_000  # rows, in the mail
_BLOCK = 8192
_BYTES_A_ROW = 60  # of fact, in a batch's file: from log_temp_files and the number of rows
_PERCENT = MappingProxyType(  # bloom / master by work_mem in MB, one figure per limit, from 1
    {
        16: (
            *(49.09, 45.42, 54.43, 60.06, 63.79, 72.65, 81.70, 82.08),
            *(81.73, 92.81, 93.37, 101.75, 104.34, 109.45, 112.91),
        ),
        64: (104.16, 53.36, 64.13, 60.55, 68.82, 75.19),
    }
)


@dataclass(frozen=True, slots=True)
class Spilled:
    """A query's temporary data, and its number of batches."""

    batches: int
    all_bytes: int
    outer_bytes: int


class BloomBench(Bench):
    """Milliseconds of the mail's query, so a ratio below 1 is a gain.

    `scale` is the share of the mail's rows and of its work_mem. `memory`, in MB, limits each server during
    measurements, including cached files. The tables' files are cached before, temporary files are not. With `workers`,
    all processes share a hash table (Parallel Hash).
    """

    name = "bloom"
    unit = "ms"
    axes = MappingProxyType({"work_mem": (*_PERCENT, FLOOR), "limit": tuple(range(1, 16))})
    typical_seconds = 4
    headlines = ((16, 1), (16, 8), (16, 15), (64, 1))
    mail = Mail(
        "WIP: bloom filter in Hash Joins with batches",
        "5670946E.8070705@2ndquadrant.com",
        MappingProxyType(
            {
                (work_mem, limit): percent / 100
                for work_mem, line in _PERCENT.items()
                for limit, percent in enumerate(line, start=1)
            }
        ),
    )
    settings = MappingProxyType(
        {
            **UNDISTURBED,
            "jit": "off",
            "hash_mem_multiplier": "1",  # the setting is newer than the mail
            "enable_mergejoin": "off",
            "enable_nestloop": "off",
        }
    )

    def __init__(
        self, join: Join = Join.INNER, scale: float = 0.1, memory: int | None = None, workers: int = 0
    ) -> None:
        self._join = join
        self._scale = scale
        self._memory = memory
        self._workers = workers
        self._spilled: dict[tuple[str, Point], Spilled] = {}

    @classmethod
    def for_headlines(cls) -> Self:
        """Return the bench with half of the rows and of work_mem."""
        return cls(scale=0.05)

    @property
    def parameters(self) -> str:
        """Return the join, the scale, the limit of memory and the number of workers."""
        return f"{self._join} {self._scale} {self._memory} {self._workers}"

    def label(self, point: Point) -> str:
        """Return the point as text. A limit of the mail, a hexadecimal digit, is a share of matching rows."""
        work_mem, limit = point
        memory = "one batch" if work_mem == FLOOR else f"{work_mem} MB"
        join = f"{self._join}, {self._workers} workers" if self._workers else self._join
        return f"{join}, {memory}, {limit / 16:.0%} match"

    def data(self, points: Sequence[Point]) -> str:
        """Return the scale."""
        return str(self._scale)

    def fill(self, arm: Arm, points: Sequence[Point]) -> None:
        """Fill both tables."""
        with connected(arm) as connection:
            connection.execute("CREATE UNLOGGED TABLE dim (id int, dval text)")
            connection.execute("CREATE UNLOGGED TABLE fact (id int, fval text)")
            dim, fact = round(_DIM * self._scale), round(_FACT * self._scale)
            connection.execute(f"INSERT INTO dim SELECT i, md5(i::text) FROM generate_series(1, {dim}) AS s(i)")
            for _ in range(fact // dim):
                connection.execute("INSERT INTO fact SELECT * FROM dim")
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")

    def prepare(self, arm: Arm, points: Sequence[Point]) -> None:
        """Record the temporary data of each point once."""
        with connected(arm) as connection:
            for point in points:
                self._spilled[arm.name, point] = self._explained(connection, point)

    def conditions(self, arm: Arm) -> AbstractContextManager[None]:
        """Return the limit of memory, if there is one."""
        return super().conditions(arm) if self._memory is None else memory_limited(arm.cluster.pid, self._memory)

    def measure(self, arm: Arm, point: Point, seconds: int) -> float:
        """Return milliseconds per query: the mean of all runs within the time. Raises BenchError."""
        with connected(arm) as connection:
            return milliseconds(connection, self._granted(connection, point), seconds)

    def extras(self, point: Point, arm: str, against: str, samples: Samples) -> Mapping[str, float]:
        """Return the share of matches, batches, written data (ratios and rows), and the ratio to the floor."""
        mine, theirs = self._spilled[arm, point], self._spilled[against, point]
        figures = {"matching": point[1] / 16, "batches": float(theirs.batches)}
        if theirs.outer_bytes:
            figures["temp"] = mine.all_bytes / theirs.all_bytes
            figures["outer temp"] = mine.outer_bytes / theirs.outer_bytes
        figures["rows spilled"] = mine.outer_bytes // _BYTES_A_ROW
        floor = (FLOOR, point[1])
        if (floor, against) in samples:
            figures["to floor"] = median(samples[point, arm]) / median(samples[floor, against])
        return figures

    def _granted(self, connection: Connection, point: Point) -> str:
        """Set the point's work_mem, and return its query."""
        work_mem, limit = point
        connection.execute(f"SET work_mem = {max(round(work_mem * 1024 * self._scale), 64)}")
        connection.execute(f"SET max_parallel_workers_per_gather = {self._workers}")
        return _QUERIES[self._join].format(limit=f"{limit:x}")

    def _explained(self, connection: Connection, point: Point) -> Spilled:
        join = explained_join(connection, self._granted(connection, point), self.label(point))
        outer, inner = join["Plans"]
        all_blocks, below = _written(join), _written(outer) + _written(inner)
        return Spilled(inner["Hash Batches"], all_blocks * _BLOCK, (all_blocks - below) * _BLOCK)


def _written(node: Node) -> int:
    return int(node["Temp Written Blocks"])
