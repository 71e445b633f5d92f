"""Shared CTE: a materialized CTE that two readers share gives each reader all rows of its query.

The query becomes a materialized CTE. The first reader reads two rows of it and stops; the second one skips as many and
reads the rest. So the second reader begins with rows that the executor stored for the first one, and continues with
rows that the plan of the CTE has not returned yet. The rows of both are those of the query.

The CTE is executed once, and both readers read the stored rows in the same order. So LIMIT and OFFSET need no order.

If a query returns aggregates of a subquery only, then the subquery becomes the CTE, because one row cannot be shared.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import ClassVar, Final

from oracles.framework.canaries import canary_case, query
from oracles.framework.metamorphic import Metamorphic
from oracles.framework.relations import ArmRuns, MetamorphicRelation
from oracles.model.oracle import Canary, Sample
from oracles.sql.core import with_derived_rows

CACHED: Final = 4096  # statements
SHARED: Final = Sample("shared", 32)
_SHARED: Final = (
    "WITH shared AS MATERIALIZED ({sql}) (SELECT * FROM shared LIMIT 2) UNION ALL (SELECT * FROM shared OFFSET 2)"
)


@lru_cache(CACHED)
def shared(sql: str) -> str:
    """Return the query with its rows read by two readers of one CTE; "" if these may differ."""
    return with_derived_rows(sql, lambda rows: _SHARED.format(sql=rows))


class SharedCte(Metamorphic):
    """Queries that return other rows when two readers share them as a materialized CTE."""

    name: ClassVar[str] = "shared_cte"
    samples: ClassVar[tuple[Sample, ...]] = (SHARED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        # the Append is that of the readers
        Canary("lose_appended", canary_case(query("SELECT n FROM canary"), samples=(SHARED,))),
    )

    def relations(self, arm_runs: ArmRuns) -> Iterator[MetamorphicRelation]:
        """Yield the relation between the case and its queries as two readers return them."""
        made = {step: shared(sql) for step, sql in arm_runs.exact_queries().items()}
        changed = {step: sql for step, sql in made.items() if sql}
        yield from arm_runs.relation_to_case("rows change when two readers share a CTE", changed)
