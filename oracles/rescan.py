"""Rescan: a plan returns the rows of its query again, however many rows of its earlier executions were read.

The query becomes the inner side of a nested loop, which executes one plan five times: it reads no row, one row, all,
two rows, and all again. LIMIT ends an execution early. OFFSET skips what was read, except for the last execution, whose
rows are those of the query. So each node of the plan resets the state that an execution left: hash tables, iterators,
tuplestores, chosen partitions, workers.

LIMIT and OFFSET are outside of the query, and the rows of the last execution are complete. So ties need no order.

If a query returns aggregates of a subquery only, then the subquery is executed again. Otherwise an execution would
always read all rows, because aggregates do.

Nodes such as Sort know the LIMIT above them. So does Gather, whose workers keep the first one that they got, and lose
rows under a later one: a fault of PostgreSQL (corpus/README.md). So there are two relations: executions without workers
pass their limits on, and executions with workers do not.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import ClassVar, Final

from oracles.framework.canaries import canary_case, query
from oracles.framework.metamorphic import Metamorphic
from oracles.framework.relations import ArmRuns, MetamorphicRelation
from oracles.model.mode import Mode
from oracles.model.oracle import Canary, Sample
from oracles.sql.core import with_derived_rows

CACHED: Final = 4096  # statements
RESCANNED: Final = Sample("rescanned", 32)
_ALL: Final = 1_000_000_000  # more rows than any query has
# Rows that an execution reads, rows of these that are skipped, and 0. No two are equal, because Memoize would return
# the rows of the first.
_EXECUTIONS: Final = f"(0, 1, 0), (1, 1, 0), (NULL, {_ALL}, 0), (2, 2, 0), (NULL, 0, 0)"
_RESCANNED: Final = (
    f"SELECT q.* FROM (VALUES {_EXECUTIONS}) AS again (n, skipped, none) "
    "CROSS JOIN LATERAL (SELECT * FROM (SELECT * FROM ({sql}) AS q LIMIT again.n) AS q OFFSET again.skipped) AS q"
)
# The plan of this OFFSET has a Limit node, to which the node of another LIMIT does not pass its own.
_HIDING: Final = "SELECT * FROM ({sql}) AS q OFFSET again.none"
_SERIAL: Final = Mode("serial", (("max_parallel_workers_per_gather", "0"),))


@lru_cache(CACHED)
def rescanned(sql: str) -> str:
    """Return the query with the rows of the last of five executions of `sql`; "" if these may differ."""
    return with_derived_rows(sql, lambda rows: _RESCANNED.format(sql=rows))


@lru_cache(CACHED)
def rescanned_with_hidden_limits(sql: str) -> str:
    """Return the query of `rescanned`, with the limits hidden from the plan of `sql`."""
    return with_derived_rows(sql, lambda rows: _RESCANNED.format(sql=_HIDING.format(sql=rows)))


class Rescan(Metamorphic):
    """Queries that return other rows when their plan is executed again."""

    name: ClassVar[str] = "rescan"
    samples: ClassVar[tuple[Sample, ...]] = (RESCANNED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        # the nested loop is that of the executions
        Canary("lose_looped", canary_case(query("SELECT n FROM canary"), samples=(RESCANNED,))),
    )

    def relations(self, arm_runs: ArmRuns) -> Iterator[MetamorphicRelation]:
        """Yield the relations between the case and its queries as their last execution returns them."""
        queries = arm_runs.exact_queries()
        for name, modes, again in (
            ("rows change when the plan is executed again", (), rescanned_with_hidden_limits),
            ("rows change when a limited plan is executed again", (_SERIAL,), rescanned),
        ):
            made = {step: again(sql) for step, sql in queries.items()}
            yield from arm_runs.relation_to_case(name, {step: sql for step, sql in made.items() if sql}, *modes)
