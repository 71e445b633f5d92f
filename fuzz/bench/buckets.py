"""Hash joins in a single batch: the gain of a bucket for each row instead of one for ten.

The mail's query looks up 50M rows in a hash table, whose size its condition determines. Arms with the setting
`hash_ntup_per_bucket` get the number of rows per bucket from it; others choose their buckets themselves. The outer rows
are scaled down, but not the hash table, because the cost of a look-up depends on its size. The remaining outer rows are
spread over the mail's range, so the same share of them has a match. The planner gets the mail's number of outer rows;
otherwise it would hash these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median
from types import MappingProxyType
from typing import Self

import psutil

from fuzz.bench.bench import UNDISTURBED, Bench, BenchError, Connection, Mail, Point, Samples, connected
from fuzz.bench.measurement import explained_join, milliseconds
from fuzz.servers.arm import Arm

_OUTER = 50_000_000  # rows, in the mail
_VALUES = 10_000  # distinct values of val_int
_ROWS_A_VALUE = 1_000  # in the mail's inner table of 10M rows
_BYTES = 72  # of a row in the hash table, computed from the mail's sizes
_KILOBYTES_A_VALUE = _ROWS_A_VALUE * _BYTES / 1024
LARGEST = 703_125  # kB: all rows
_NTUP = (1, 2, 4, 5, 9, 10)
_MILLISECONDS = MappingProxyType(  # by kB of the hash table, one figure per NTUP_PER_BUCKET
    {
        1_407: (6753, 7218, 7890, 9324, 9488, 12574),
        7_032: (9417, 11586, 17417, 15820, 25732, 25402),
        35_157: (13179, 17101, 27225, 24763, 43323, 43175),
        70_313: (14203, 18475, 29354, 26690, 46840, 46676),
        175_782: (14319, 17458, 25325, 34542, 37342, 60949),
        351_563: (16297, 19928, 29124, 43364, 43232, 70014),
        LARGEST: (19027, 23125, 33610, 50283, 50165, 81398),
    }
)
_QUERY = "SELECT count(i.val_txt) FROM outer_table o LEFT JOIN inner_table i ON i.id = o.id WHERE val_int < {values}"
_TABLES = 3  # times the hash table's size: the table with its buckets, and the cached inner table on several arms
_ARMS = 3


@dataclass(frozen=True, slots=True)
class _Made:
    """A hash table's figures in EXPLAIN; memory in kB."""

    buckets: int
    memory: int


def fitting() -> list[int]:
    """Return those of the mail's sizes that fit into the machine's memory, or the smallest one."""
    available = psutil.virtual_memory().available // 1024
    return [size for size in _MILLISECONDS if size * _TABLES * _ARMS <= available] or [min(_MILLISECONDS)]


class BucketsBench(Bench):
    """Milliseconds of the mail's query, so a ratio below 1 is a gain. `scale` is the share of the outer rows."""

    name = "buckets"
    unit = "ms"
    axes = MappingProxyType({"size": tuple(_MILLISECONDS), "ntup": _NTUP})
    typical_seconds = 5
    headlines = ((1_407, 10), (70_313, 10))
    beside = ("upstream",)  # PostgreSQL's own later solution
    mail = Mail(
        "tweaking NTUP_PER_BUCKET",
        "53B4A03F.3070409@fuzzy.cz",
        MappingProxyType(
            {
                (size, ntup): line[0] / figure
                for size, line in _MILLISECONDS.items()
                for ntup, figure in zip(_NTUP, line, strict=True)
            }
        ),
    )
    settings = MappingProxyType(
        {
            **UNDISTURBED,
            "jit": "off",
            "work_mem": "1GB",
            "hash_mem_multiplier": "1",  # the setting is newer than the mail
            "max_parallel_workers_per_gather": "0",
            "enable_sort": "off",
            "enable_indexscan": "off",
            "enable_bitmapscan": "off",
            "enable_mergejoin": "off",
            "enable_nestloop": "off",
        }
    )

    def __init__(self, scale: float = 0.2) -> None:
        self._step = ceil(1 / scale)
        self._made: dict[tuple[str, Point], _Made] = {}

    @classmethod
    def for_headlines(cls) -> Self:
        """Return the bench with half of the outer rows."""
        return cls(scale=0.1)

    @property
    def parameters(self) -> str:
        """Return the step between outer rows."""
        return str(self._step)

    def points(self, chosen: Mapping[str, Sequence[int]]) -> list[Point]:
        """Return the grid of the chosen values, by default of the sizes that fit into memory.

        Raises BenchError for sizes that the mail's table cannot have.
        """
        grid = super().points({**chosen, "size": chosen.get("size") or fitting()})
        for size, _ in grid:
            if not 1 <= round(size / _KILOBYTES_A_VALUE) <= _VALUES:
                raise BenchError(
                    f"a hash table of {size} kB is out of range; give a size from {_KILOBYTES_A_VALUE:.0f} to {LARGEST}"
                )
        return grid

    def label(self, point: Point) -> str:
        """Return the point as text."""
        size, ntup = point
        return f"{size / 1024:.1f} MB, NTUP {ntup}"

    def data(self, points: Sequence[Point]) -> str:
        """Return the step between outer rows, and the size of the inner table."""
        return f"{self._step} {max(map(_values, points))}"

    def fill(self, arm: Arm, points: Sequence[Point]) -> None:
        """Fill both tables as far as the largest size needs."""
        last = max(map(_values, points))
        ids = f"generate_series(0, {_ROWS_A_VALUE - 1}) AS n, generate_series(0, {last - 1}) AS v"
        with connected(arm) as connection:
            connection.execute("CREATE UNLOGGED TABLE outer_table (id int)")
            connection.execute("CREATE UNLOGGED TABLE inner_table (id int, val_int int, val_txt text)")
            rows = f"generate_series(1, {_OUTER // self._step}) AS s (i)"
            connection.execute(f"INSERT INTO outer_table SELECT i * {self._step} FROM {rows}")
            connection.execute(
                f"INSERT INTO inner_table SELECT n * {_VALUES} + v, v, md5((n * {_VALUES} + v)::text) FROM {ids}"
            )
            connection.execute("VACUUM ANALYZE")
            connection.execute(f"UPDATE pg_class SET reltuples = {_OUTER} WHERE relname = 'outer_table'")
            connection.execute("CHECKPOINT")

    def prepare(self, arm: Arm, points: Sequence[Point]) -> None:
        """Record the hash table of each point once."""
        with connected(arm) as connection:
            for point in points:
                self._made[arm.name, point] = self._explained(connection, point)

    def measure(self, arm: Arm, point: Point, seconds: int) -> float:
        """Return milliseconds per query: the mean of all runs within the time. Raises BenchError."""
        with connected(arm) as connection:
            return milliseconds(connection, _planned(connection, point), seconds)

    def extras(self, point: Point, arm: str, against: str, samples: Samples) -> Mapping[str, float]:
        """Return both arms' buckets and kB of memory, and the mail's ratio, to the other arm with N = 1."""
        mine, theirs = self._made[arm, point], self._made[against, point]
        figures = {
            "buckets": float(mine.buckets),
            f"{against} buckets": float(theirs.buckets),
            "kB": float(mine.memory),
            f"{against} kB": float(theirs.memory),
        }
        best = (point[0], 1)
        if (best, against) in samples:
            figures[f"{against} with N = 1"] = median(samples[best, against]) / median(samples[point, against])
        return figures

    def _explained(self, connection: Connection, point: Point) -> _Made:
        join = explained_join(connection, _planned(connection, point), self.label(point))
        table = join["Plans"][1]
        if table["Plans"][0].get("Relation Name") != "inner_table":
            raise BenchError(f"the query of {self.label(point)} hashed the wrong table; choose another size")
        if table["Hash Batches"] > 1:
            raise BenchError(f"the hash table of {self.label(point)} had {table['Hash Batches']} batches")
        return _Made(table["Hash Buckets"], table["Peak Memory Usage"])


def _values(point: Point) -> int:
    """Return the number of val_int's values that give a hash table of the point's size."""
    return round(point[0] / _KILOBYTES_A_VALUE)


def _planned(connection: Connection, point: Point) -> str:
    """Set the rows per bucket if the arm has the setting, and return the point's query."""
    setting = "SELECT set_config(name, %s, false) FROM pg_settings WHERE name = 'hash_ntup_per_bucket'"
    connection.execute(setting, (str(point[1]),))
    return _QUERY.format(values=_values(point))
