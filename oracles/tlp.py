"""TLP, ternary logic partitioning: a query must return the rows of its three parts WHERE p, NOT p and p IS NULL.

Rigger and Su, "Finding Bugs in Database Systems via Query Partitioning", OOPSLA 2020. All four variants of the paper
exist: WHERE, HAVING, aggregates and DISTINCT. Here, p is one of the query's own conditions if possible, so each
generated condition is evaluated under all three truth values.

Each row belongs to exactly one part. Grouped rows are partitioned by HAVING, so that each part has whole groups.
DISTINCT is applied again to all parts together. Aggregates of all rows are computed from those of the parts.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, ClassVar, Final

from pglast import ast
from pglast.enums import JoinType

from oracles.framework.canaries import canary_case, query
from oracles.framework.metamorphic import Metamorphic
from oracles.framework.relations import ArmRuns, MetamorphicRelation
from oracles.model.oracle import Canary, Sample
from oracles.sql.building import all_of, digest, expression, is_null, negated, printed, snippet, union_all
from oracles.sql.core import deterministic_core, groups, restrictions, top_join
from oracles.sql.determinism import AGGREGATES, SET_RETURNING, calls, name_of
from oracles.sql.names import aggregates
from oracles.sql.total_order import is_star

CACHED: Final = 4096  # statements; each is partitioned several times in a row

# The aggregate that combines the parts' aggregates. A sum of no rows is null, which sum and max ignore; a count is
# never null.
_COMBINED_BY: Final = {
    "count": "sum",
    "sum": "sum",
    "min": "min",
    "max": "max",
    "bit_and": "bit_and",
    "bit_or": "bit_or",
    "bit_xor": "bit_xor",
    "bool_and": "bool_and",
    "every": "bool_and",
    "bool_or": "bool_or",
}


class Shape(StrEnum):
    """Kinds of partitioning: the paper's variants."""

    WHERE = "where"
    HAVING = "having"
    AGGREGATE = "aggregate"
    DISTINCT = "distinct"


@dataclass(frozen=True, slots=True)
class Partitioning:
    """Two queries with the same rows."""

    shape: Shape
    whole: str
    parts: str


@lru_cache(CACHED)
def partitioned(sql: str) -> Partitioning | None:
    """Return the partitioned form of this query; None if there is none."""
    select = deterministic_core(sql)
    shape = None if select is None else _shape(select)
    if shape is None:
        return None
    whole = _without_condition(sql)
    parts = [_part(sql, condition) for condition in (lambda p: p, negated, is_null)]
    if whole is None or any(part is None for part in parts):
        return None
    statements = _aggregated(whole, parts) if shape is Shape.AGGREGATE else _listed(whole, parts, shape)
    texts = tuple(map(printed, statements))
    return Partitioning(shape, *texts) if all(texts) else None


def _shape(select: Any) -> Shape | None:
    targets: Any = select.targetList or ()
    if groups(select):
        return None if select.distinctClause else Shape.HAVING
    if any(map(aggregates, targets)):
        return Shape.AGGREGATE if all(_combines(target.val) for target in targets) else None
    return Shape.DISTINCT if select.distinctClause else Shape.WHERE


def _combines(value: Any) -> bool:
    """Return whether it is an aggregate that can be computed from the parts' aggregates."""
    plain = isinstance(value, ast.FuncCall) and not (value.agg_distinct or value.agg_order or value.agg_within_group)
    return plain and name_of(value) in _COMBINED_BY


def _without_condition(sql: str) -> Any:
    """Return the core without the partitioning condition."""
    select = deterministic_core(sql)
    _, others = _condition(sql, select)
    return _restricted(select, all_of(*others))


def _part(sql: str, condition: Callable[[Any], Any]) -> Any:
    select = deterministic_core(sql)
    chosen, others = _condition(sql, select)
    return None if chosen is None else _restricted(select, all_of(condition(chosen), *others))


def _restricted(select: Any, condition: Any) -> Any:
    setattr(select, "havingClause" if groups(select) else "whereClause", condition)
    return select


def _condition(sql: str, select: Any) -> tuple[Any, list[Any]]:
    """Return the partitioning condition, one of the query's or a new one, and the query's other conditions.

    It is a new one if FROM has several items: without their own conditions, the cross product may be huge.
    """
    given = restrictions(select)
    if given and (groups(select) or len(select.fromClause) == 1):
        chosen = int.from_bytes(hashlib.sha256(sql.encode()).digest()[:4], "big") % len(given)
        return given[chosen], given[:chosen] + given[chosen + 1 :]
    return _made_for(sql, select), given


def _made_for(sql: str, select: Any) -> Any:
    """Return the condition of the outermost join, if that is an outer join, else a condition on a value, else None."""
    again = deterministic_core(sql)
    join = None if groups(select) else top_join(again)
    if join is not None and join.jointype != JoinType.JOIN_INNER:
        return join.quals
    value = _value(again)
    if value is None:
        return None
    condition = expression("x::text < '5'")
    condition.lexpr.arg = value
    return condition


def _value(select: Any) -> Any:
    """Return an expression with one value for each row, or for each group if it groups; None if there is none."""
    for target in select.targetList or ():
        value = target.val
        if groups(select):
            if calls(value, AGGREGATES):
                return value
            continue
        if isinstance(value, ast.FuncCall) and name_of(value) in AGGREGATES:
            value = next(iter(value.args or ()), None)
        if value is not None and not is_star(value) and not calls(value, SET_RETURNING):
            return value
    return None


def _listed(whole: Any, parts: list[Any], shape: Shape) -> tuple[Any, Any]:
    """Return digests of the rows of the whole and of all parts."""
    together = union_all(*parts)
    if shape is Shape.DISTINCT:
        together = _distinct(together)
    return digest(whole), digest(together)


def _distinct(union: Any) -> Any:
    """Return the distinct rows of all parts."""
    around = snippet("SELECT DISTINCT * FROM (SELECT) AS p")
    around.withClause, union.withClause = union.withClause, None
    around.fromClause[0].subquery = union
    return around


def _aggregated(whole: Any, parts: list[Any]) -> tuple[Any, Any]:
    """Return the aggregates of all rows, and of the parts' aggregates."""
    functions = [_COMBINED_BY[name_of(target.val)] for target in whole.targetList]
    for part in parts:
        for number, target in enumerate(part.targetList, start=1):
            target.name = f"c{number}"
    outputs = ", ".join(f"{function}(c{number})" for number, function in enumerate(functions, start=1))
    around = snippet(f"SELECT {outputs} FROM (SELECT) AS p")
    together = union_all(*parts)
    around.withClause, together.withClause = together.withClause, None
    around.fromClause[0].subquery = together
    return whole, around


PARTITIONED: Final = Sample("partitioned", 32)


class Tlp(Metamorphic):
    """Queries whose rows differ from those of their three parts: a condition true, false and unknown."""

    name: ClassVar[str] = "tlp"
    samples: ClassVar[tuple[Sample, ...]] = (PARTITIONED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary(
            "keep_unknown", canary_case(query("SELECT n FROM canary WHERE nullif(n, 2) < 4"), samples=(PARTITIONED,))
        ),
        Canary(
            "keep_unknown",
            canary_case(
                query("SELECT count(*) FROM canary GROUP BY n HAVING max(nullif(n, 2)) < 4"), samples=(PARTITIONED,)
            ),
        ),
        Canary(
            "keep_unknown",
            canary_case(query("SELECT sum(n) FROM canary WHERE nullif(n, 2) < 4"), samples=(PARTITIONED,)),
        ),
        Canary("refuse_negated", canary_case(query("SELECT n FROM canary WHERE n > 2"), samples=(PARTITIONED,))),
        Canary("lose_negated", canary_case(query("SELECT DISTINCT n FROM canary WHERE n > 1"), samples=(PARTITIONED,))),
    )

    def relations(self, arm_runs: ArmRuns) -> Iterator[MetamorphicRelation]:
        """Yield a relation for each kind of partitioning."""
        made = {step: each for step, sql in arm_runs.exact_queries().items() if (each := partitioned(sql)) is not None}
        pairs = {step: (each.whole, each.parts) for step, each in made.items()}
        names = {step: f"a query is not its three parts, by {each.shape}" for step, each in made.items()}
        yield from arm_runs.relations(pairs, names)
