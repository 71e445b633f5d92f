"""Query A: three partitioned relations joined and grouped.

The mail shows its times as a picture and gives no text of it: this is a query of that kind.
"""

from collections.abc import Mapping
from types import MappingProxyType

from fuzz.bench.bench import Connection
from fuzz.bench.one_key import create_relations
from fuzz.bench.planning import SIZES, PlanningBench
from fuzz.bench.planning_mail import planning_mail


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
        """Make the three relations."""
        create_relations(connection, 3, partitions)
