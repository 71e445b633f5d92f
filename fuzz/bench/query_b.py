"""Query B: eight partitioned relations joined on one key. The mail describes it, and gives no text.

Other numbers of relations can be joined: from nine on, join_collapse_limit keeps the search as small as with eight, so
that a larger share of the time is what grows with the partitions.
"""

from collections.abc import Mapping
from types import MappingProxyType

from fuzz.bench.bench import Connection, Point, Samples
from fuzz.bench.one_key import create_relations
from fuzz.bench.planning import PlanningBench
from fuzz.bench.planning_mail import planning_mail, ratios

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
    """Planning time of a join of eight relations, or of another number; beside it, master's of eight in the mail."""

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
        """Make the relations."""
        create_relations(connection, self._relations, partitions)

    def extras(self, point: Point, arm: str, against: str, samples: Samples) -> dict[str, float]:
        """Return the mail's milliseconds of master, planner memory, and growth."""
        told = {"mail master": _MAIL[point[0]][0]} if point[0] in _MAIL else {}
        return told | super().extras(point, arm, against, samples)
