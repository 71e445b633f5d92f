"""Queries A and B: planning of relations partitioned by the key of their join.

Query B joins eight relations on one key. The mail describes it but does not give its text. Other numbers of relations
are possible. From nine on, join_collapse_limit keeps the search as small as with eight, so the part that grows with the
partitions is a larger share of the time. Query A joins and groups three relations. The mail shows its times as a
picture and does not give its text either, so this is a query of that kind. The key has an index, so that path keys and
clauses of each partition are searched in the key's equivalence class, and statistics exist, as in practice. Without an
index, master's time for query B grows by a tenth as much. The index is not unique. With a unique one, 17 considers
Memoize for lookups of at most one row more often than 18. That is a sixth of planning with one partition, and is
unrelated to equivalence classes.
"""

from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType

from fuzz.bench.bench import Connection, Point, Samples
from fuzz.bench.planning import SIZES, PlanningBench, planning_mail, ratios

_KEYS = 1024  # rows of each relation, unless it has more partitions


def create_relations(connection: Connection, number: int, partitions: int) -> None:
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
        create_relations(connection, 3, partitions)


RELATIONS = 8
_MAIL = MappingProxyType(  # milliseconds of master and of v5, v6, v7
    {
        1: (55.459, (56.268, 57.520, 56.703)),
        2: (54.162, (55.511, 55.212, 54.395)),
        4: (56.491, (55.643, 55.025, 54.996)),
        8: (62.694, (57.770, 57.519, 57.114)),
        16: (79.547, (63.075, 63.117, 63.161)),
        32: (134.623, (74.788, 74.369, 75.801)),
        64: (368.716, (104.027, 104.787, 105.450)),
        128: (1374.000, (169.473, 169.019, 174.919)),
        256: (5955.762, (321.450, 322.739, 342.601)),
    }
)


class QueryBBench(PlanningBench):
    """Planning time of a join of eight relations, or of another number. Also master's time of eight in the mail."""

    name = "query_b"
    mail = planning_mail(ratios({(size,): figures for size, figures in _MAIL.items()}))

    def __init__(self, relations: int = RELATIONS) -> None:
        super().__init__()
        self._relations = relations

    def queries(self) -> Mapping[str, str]:
        """Return query B."""
        others = "".join(f" JOIN r{place} USING (k)" for place in range(2, self._relations + 1))
        return {"B": f"SELECT * FROM r1{others}"}

    def create(self, connection: Connection, partitions: int) -> None:
        """Create the relations."""
        create_relations(connection, self._relations, partitions)

    def extras(self, point: Point, arm: str, against: str, samples: Samples) -> dict[str, float]:
        """Return the mail's milliseconds of master, planner memory, and growth."""
        figures = {"mail master": _MAIL[point[0]][0]} if point[0] in _MAIL else {}
        return figures | super().extras(point, arm, against, samples)
