"""Planning time of any queries, and of queries over relations partitioned by the key of their join, by partitions.

A session per arm stays open. The first planning of each query fills the session's caches, and is not measured: its cost
is the same for a patch and master. Planner settings are PostgreSQL's own, with GEQO from 12 relations. Nothing is
executed. The time is CPU time, so that other work on the machine, for which planning would wait, does not count. The
mail is the one on planning with many partitions. Its figures 1 to 4 are pictures, and are not repeated.

Query B joins eight relations on one key. The mail describes it but does not give its text. Other numbers of relations
are possible. From nine on, join_collapse_limit keeps the search as small as with eight, so the part that grows with the
partitions is a larger share of the time. Query A joins and groups three relations. The mail shows its times as a
picture and does not give its text either, so this is a query of that kind. The key has an index, so that path keys and
clauses of each partition are searched in the key's equivalence class, and statistics exist, as in practice. Without an
index, master's time for query B grows by a tenth as much. The index is not unique. With a unique one, 17 considers
Memoize for lookups of at most one row more often than 18. That is a sixth of planning with one partition, and is
unrelated to equivalence classes.
"""

import re
import statistics
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from types import MappingProxyType

import psycopg

from fuzz.bench.bench import UNDISTURBED, Bench, BenchError, Connection, Mail, Point, Samples, connected
from fuzz.errors import first_line
from fuzz.execution.costs import OF_PLANNING, costs_in
from fuzz.servers.arm import Arm
from oracles.explain.nodes import PLANNER_CPU

VARIANTS = ("v3", "v5", "v6", "v7")  # the columns of each table of the mail


def planning_mail(ratios: Mapping[str, Mapping[Point, float]] = MappingProxyType({})) -> Mail:
    """Return the mail with one of its tables, by variant. Other arms get the ratios of v7, which it prefers."""
    return Mail(
        "Reducing planning time when tables have many partitions",
        "CAJ2pMkYohJofeEvu7N_QmbGncjQ+4H4e1cL+Crii9z9x2=b3Sg@mail.gmail.com",
        ratios.get("v7", {}),
        ratios,
    )


def ratios(
    table: Mapping[Point, tuple[float, Sequence[float]]], variants: Sequence[str] = VARIANTS
) -> dict[str, dict[Point, float]]:
    """Return variant / master, by variant, of a table with master's and the variants' figures at each point."""
    return {
        variant: {point: figures[place] / master for point, (master, figures) in table.items()}
        for place, variant in enumerate(variants)
    }


SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_MEMORY = re.compile(r"Memory: used=([0-9]+)kB")
_HAS_MEMORY = 170000  # the first version with EXPLAIN (MEMORY)


class PlanningBench(Bench):
    """Milliseconds of planning all queries, so a ratio below 1 is a gain. The median of several measurements."""

    unit = "ms"
    axes = MappingProxyType({"partitions": SIZES})
    rounds = 7
    settings = MappingProxyType(
        {
            **UNDISTURBED,
            "shared_buffers": "512MB",
            "jit": "off",
            "max_locks_per_transaction": "2048",  # all partitions of eight tables and their indexes
        }
    )

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
        self._memory: dict[tuple[str, Point], int] = {}  # kB

    @abstractmethod
    def queries(self) -> Mapping[str, str]:
        """Return name -> query. Queries name relations without a schema. Raises BenchError."""

    @abstractmethod
    def create(self, connection: Connection, partitions: int) -> None:
        """Create the relations in the current schema. Raises BenchError."""

    def label(self, point: Point) -> str:
        """Return the point as text."""
        (partitions,) = point
        return f"{partitions} partition{'s' * (partitions > 1)}"

    def fill(self, arm: Arm, points: Sequence[Point]) -> None:
        """Create a schema for each number of partitions."""
        with connected(arm) as connection:
            for (partitions,) in points:
                connection.execute(f"CREATE SCHEMA {_schema(partitions)}")
                connection.execute(f"SET search_path = {_schema(partitions)}")
                self.create(connection, partitions)
            connection.execute("CHECKPOINT")

    def prepare(self, arm: Arm, points: Sequence[Point]) -> None:
        """Do nothing: the first planning of each query is not measured."""

    @contextmanager
    def conditions(self, arm: Arm) -> Iterator[None]:
        """Keep a session open."""
        with connected(arm) as connection:
            self._sessions[arm.name] = _Session(connection)
            yield

    def measure(self, arm: Arm, point: Point, seconds: int) -> float:
        """Return milliseconds: the median of all runs within the time. Raises BenchError."""
        session = self._sessions[arm.name]
        session.connection.execute(f"SET search_path = {_schema(point[0])}")
        if (arm.name, point) not in self._memory:  # the first time, which also fills the caches
            self._memory[arm.name, point] = sum(session.memory(*query) for query in self.queries().items())
        times: list[float] = []
        start = time.perf_counter()
        while not times or time.perf_counter() - start < seconds:
            times.append(sum(session.planning_time(*query) for query in self.queries().items()))
        return statistics.median(times)

    def extras(self, point: Point, arm: str, against: str, samples: Samples) -> dict[str, float]:
        """Return the ratio of planner memory (from 17 on), and time(n) / time(n / 2) of both arms.

        The memory of a point is unknown if an earlier run measured all of its rounds.
        """
        figures = {}
        mine, theirs = (self._memory.get((name, point)) for name in (arm, against))
        if mine and theirs:
            figures["memory"] = mine / theirs
        for column, name in (("growth", arm), ("growth against", against)):
            if (before := samples.get(((point[0] // 2,), name))) and point[0] % 2 == 0:
                figures[column] = statistics.median(samples[point, name]) / statistics.median(before)
        return figures


def _schema(partitions: int) -> str:
    return f"partitions_{partitions}"


class _Session:
    """A connection that plans queries, and receives the planner's CPU time and memory."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._times: list[float] = []  # planning times of the latest statement
        for name, value in OF_PLANNING.items():
            connection.execute(f"SET {name} = {value}")
        connection.add_notice_handler(self._listen)

    def _listen(self, notice: psycopg.errors.Diagnostic) -> None:
        costs = costs_in(f"{notice.message_primary}\n{notice.message_detail}")
        if PLANNER_CPU in costs:
            self._times.append(costs[PLANNER_CPU])

    def planning_time(self, name: str, query: str) -> float:
        """Return the CPU milliseconds of planning a query. Raises BenchError."""
        self._explain("SUMMARY", name, query)
        if not self._times:
            raise BenchError(f"the server reports no planning time of query {name}; give a SELECT")
        return self._times[-1]

    def memory(self, name: str, query: str) -> int:
        """Return the kB of planning a query; 0 if the server does not report it. Raises BenchError."""
        option = "MEMORY" if self.connection.info.server_version >= _HAS_MEMORY else "SUMMARY"
        found = _MEMORY.search(self._explain(option, name, query))
        return int(found[1]) if found else 0

    def _explain(self, option: str, name: str, query: str) -> str:
        """Return the end of the plan with the summary. Plans of many partitions have thousands of lines."""
        self._times.clear()
        try:
            lines = self.connection.execute(f"EXPLAIN ({option}, COSTS OFF) {query}").fetchall()
        except psycopg.Error as error:
            raise BenchError(f"query {name}: {first_line(str(error))}") from error
        return "\n".join(line for (line,) in lines[-4:])


_KEYS = 1024  # rows of each relation, unless it has more partitions


def _create_relations(connection: Connection, number: int, partitions: int) -> None:
    """Create r1, r2, ... in the current schema, each with a row per key, and with `partitions` ranges of keys."""
    keys = max(_KEYS, partitions)
    bounds = [keys * place // partitions for place in range(partitions + 1)]
    for relation in (f"r{place}" for place in range(1, number + 1)):
        connection.execute(
            f"CREATE TABLE {relation} (k int NOT NULL, a int NOT NULL, b int NOT NULL) PARTITION BY RANGE (k)"
        )
        for place, (low, high) in enumerate(pairwise(bounds)):
            connection.execute(
                f"CREATE TABLE {relation}_{place} PARTITION OF {relation} FOR VALUES FROM ({low}) TO ({high})"
            )
        connection.execute(f"CREATE INDEX ON {relation} (k)")
        connection.execute(f"INSERT INTO {relation} SELECT k, k % 7, k % 100 FROM generate_series(0, {keys - 1}) AS k")
        connection.execute(f"ANALYZE {relation}")


class QueryABench(PlanningBench):
    """Planning time of a join of three relations and its grouping."""

    name = "query_a"
    axes = MappingProxyType({"partitions": (*SIZES, 512, 1024)})
    mail = planning_mail()

    def queries(self) -> Mapping[str, str]:
        """Return query A."""
        joined = "r1 JOIN r2 USING (k) JOIN r3 USING (k)"
        return {"A": f"SELECT k, count(*), sum(r1.a + r2.a + r3.a) FROM {joined} GROUP BY k"}

    def create(self, connection: Connection, partitions: int) -> None:
        """Create the three relations."""
        _create_relations(connection, 3, partitions)


RELATIONS = 8
_MAIL = MappingProxyType(  # milliseconds of master and of v1, v3, v5, v6, v7
    {
        1: (55.459, (57.376, 58.849, 56.268, 57.520, 56.703)),
        2: (54.162, (56.454, 57.615, 55.511, 55.212, 54.395)),
        4: (56.491, (59.742, 57.108, 55.643, 55.025, 54.996)),
        8: (62.694, (67.920, 59.591, 57.770, 57.519, 57.114)),
        16: (79.547, (90.589, 64.954, 63.075, 63.117, 63.161)),
        32: (134.623, (160.452, 76.626, 74.788, 74.369, 75.801)),
        64: (368.716, (439.894, 107.278, 104.027, 104.787, 105.450)),
        128: (1374.000, (1598.748, 170.909, 169.473, 169.019, 174.919)),
        256: (5955.762, (6921.668, 324.113, 321.450, 322.739, 342.601)),
    }
)


class QueryBBench(PlanningBench):
    """Planning time of a join of eight relations, or of another number. Also master's time of eight in the mail."""

    name = "query_b"
    headlines = ((1,), (64,), (256,))
    mail = planning_mail(ratios({(size,): figures for size, figures in _MAIL.items()}, ("v1", *VARIANTS)))

    def __init__(self, relations: int = RELATIONS) -> None:
        super().__init__()
        self._relations = relations

    @property
    def parameters(self) -> str:
        """Return the number of relations."""
        return str(self._relations)

    def queries(self) -> Mapping[str, str]:
        """Return query B."""
        others = "".join(f" JOIN r{place} USING (k)" for place in range(2, self._relations + 1))
        return {"B": f"SELECT * FROM r1{others}"}

    def create(self, connection: Connection, partitions: int) -> None:
        """Create the relations."""
        _create_relations(connection, self._relations, partitions)

    def extras(self, point: Point, arm: str, against: str, samples: Samples) -> dict[str, float]:
        """Return the mail's milliseconds of master, planner memory, and growth."""
        figures = {"mail master": _MAIL[point[0]][0]} if point[0] in _MAIL else {}
        return figures | super().extras(point, arm, against, samples)
