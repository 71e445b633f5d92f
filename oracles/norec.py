"""NoREC, non-optimizing reference engine construction: WHERE p must return as many rows as those for which p is true.

Rigger and Su, "Detecting Optimization Bugs in Database Engines via Non-Optimizing Reference Engine Construction",
ESEC/FSE 2020. A condition in WHERE determines indexes, partitions, semi joins and the order of joins. In a target list
it is evaluated for each row, so the planner cannot optimize it.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar, Final

from oracles.framework.canaries import canary_case, query
from oracles.framework.metamorphic import Metamorphic
from oracles.framework.relations import ArmRuns, MetamorphicRelation
from oracles.model.oracle import Canary, Sample
from oracles.sql.building import printed, snippet
from oracles.sql.core import core
from oracles.sql.determinism import is_deterministic

CACHED: Final = 4096  # statements
FILTERED: Final = Sample("filtered", 32)


class Norec(Metamorphic):
    """Conditions that select another number of rows in WHERE than those for which they are true."""

    name: ClassVar[str] = "norec"
    samples: ClassVar[tuple[Sample, ...]] = (FILTERED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary("keep_unknown", canary_case(query("SELECT n FROM canary WHERE nullif(n, 2) < 4"), samples=(FILTERED,))),
        Canary("lose_negated", canary_case(query("SELECT max(n) FROM canary WHERE NOT n > 2"), samples=(FILTERED,))),
    )

    def relations(self, arm_runs: ArmRuns) -> Iterator[MetamorphicRelation]:
        """Yield the relation between both counts of rows."""
        made = {step: pair for step, sql in arm_runs.queries().items() if (pair := counts(sql)) is not None}
        pairs = arm_runs.with_exact_results(made, lambda pair: pair[0])
        yield from arm_runs.relations(pairs, "WHERE selects another number of rows than meet it")


@lru_cache(CACHED)
def counts(sql: str) -> tuple[str, str] | None:
    """Return two queries for the number of rows that meet WHERE: filtered by it, and with it evaluated for each row.

    None if there is no WHERE, or several items in FROM: without their condition, the cross product may be huge.
    """
    filtered = _rows(sql, "SELECT count(*)")
    worked_out = _rows(sql, "SELECT coalesce(sum(CASE WHEN p THEN 1 ELSE 0 END), 0)")
    if filtered is None or worked_out is None:
        return None
    worked_out.targetList[0].val.args[0].args[0].args[0].expr = worked_out.whereClause
    worked_out.whereClause = None
    both = printed(filtered), printed(worked_out)
    return both if all(both) else None


def _rows(sql: str, counting: str) -> Any:
    """Return the tree of `counting` over the rows that the query groups, aggregates or returns; None as in `counts`."""
    select = core(sql)
    if select is None or select.whereClause is None or len(select.fromClause) != 1:
        return None
    count = snippet(counting)
    count.fromClause, count.whereClause, count.withClause = select.fromClause, select.whereClause, select.withClause
    return count if is_deterministic(count) else None
