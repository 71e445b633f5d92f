"""NoREC, non-optimizing reference engine construction: WHERE p lets through as many rows as p is true for.

Rigger and Su, "Detecting Optimization Bugs in Database Engines via Non-Optimizing Reference Engine Construction",
ESEC/FSE 2020. In WHERE a condition chooses indexes, partitions, semi joins and the order of joins; in a target list it
is worked out for each row, which leaves the planner nothing to decide.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar, Final

from oracles.framework.canaries import canary_case, query
from oracles.framework.metamorphic import Metamorphic
from oracles.framework.relations import MetamorphicRelation, Played
from oracles.model.oracle import Canary
from oracles.model.sampling import Sample
from oracles.sql.building import printed, snippet
from oracles.sql.core import core
from oracles.sql.determinism import is_deterministic

CACHED: Final = 4096  # statements
FILTERED: Final = Sample("filtered", 32)


class Norec(Metamorphic):
    """A condition holds for as many rows as it lets through."""

    name: ClassVar[str] = "norec"
    samples: ClassVar[tuple[Sample, ...]] = (FILTERED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary("keep_unknown", canary_case(query("SELECT n FROM canary WHERE nullif(n, 2) < 4"), samples=(FILTERED,))),
        Canary("lose_negated", canary_case(query("SELECT max(n) FROM canary WHERE NOT n > 2"), samples=(FILTERED,))),
    )

    def claims(self, played: Played) -> Iterator[MetamorphicRelation]:
        """Yield the claim that both ways of counting agree."""
        made = {step: pair for step, sql in played.queries().items() if (pair := counts(sql)) is not None}
        pairs = played.tight(made, lambda pair: pair[0])
        yield from played.claims(pairs, "WHERE lets through other rows than it holds for")


@lru_cache(CACHED)
def counts(sql: str) -> tuple[str, str] | None:
    """Return two queries for the number of rows that WHERE lets through: filtered, and worked out for each row.

    None if there is no WHERE, or if it may be all that keeps a list of tables from being paired at large.
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
    """Return what counts the rows that the query groups, aggregates or shows."""
    select = core(sql)
    if select is None or select.whereClause is None or len(select.fromClause) != 1:
        return None
    count = snippet(counting)
    count.fromClause, count.whereClause, count.withClause = select.fromClause, select.whereClause, select.withClause
    return count if is_deterministic(count) else None
