"""TLP, ternary logic partitioning: a query must return the rows of its three parts WHERE p, NOT p and p IS NULL.

Rigger and Su, "Finding Bugs in Database Systems via Query Partitioning", OOPSLA 2020. All four variants of the paper
exist: WHERE, HAVING, aggregates and DISTINCT. Here, p is one of the query's own conditions if possible, so each
generated condition is evaluated under all three truth values.

Each row belongs to exactly one part. Grouped rows are partitioned by HAVING, so that each part has whole groups.
DISTINCT is applied again to all parts together. Aggregates of all rows are computed from those of the parts.
"""

import hashlib
from collections.abc import Iterator, Sequence
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
from oracles.sql.building import DIGEST, after_with, all_of, expression, printed, text_of
from oracles.sql.core import deterministic_core, groups, restrictions, top_join
from oracles.sql.determinism import AGGREGATES, SET_RETURNING, calls, name_of
from oracles.sql.names import aggregates
from oracles.sql.total_order import is_star

CACHED: Final = 4096  # statements; each is partitioned several times in a row
_PLACE: Final = "place_of_the_condition"
_VALUES: Final = ("({p})", "(NOT ({p}))", "(({p}) IS NULL)")  # the conditions of the parts

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
    chosen, others = (None, []) if shape is None else _condition(sql, select)
    condition = "" if chosen is None else text_of(chosen)
    if shape is None or not condition:
        return None
    common, select.withClause = select.withClause, None
    clause = "havingClause" if groups(select) else "whereClause"
    # without GROUP BY, HAVING alone may make one group of all rows
    one_group = expression("TRUE") if groups(select) and not (select.groupClause or others) else None
    setattr(select, clause, all_of(one_group, *others))
    whole = printed(select)
    functions = _named(select.targetList) if shape is Shape.AGGREGATE else []
    setattr(select, clause, all_of(expression(_PLACE), *others))
    part = printed(select)
    if not whole or part.count(_PLACE) != 1:
        return None
    parts = " UNION ALL ".join(part.replace(_PLACE, value.format(p=condition)) for value in _VALUES)
    texts = tuple(after_with(common, text) for text in _statements(shape, whole, parts, functions))
    return Partitioning(shape, *texts) if all(texts) else None


def _named(targets: Sequence[Any]) -> list[str]:
    """Name the aggregates c1, c2, and so on, and return those that combine them."""
    for number, target in enumerate(targets, start=1):
        target.name = f"c{number}"
    return [_COMBINED_BY[name_of(target.val)] for target in targets]


def _statements(shape: Shape, whole: str, parts: str, functions: Sequence[str]) -> tuple[str, str]:
    """Return the queries for the whole and for all parts: digests of the rows, or `functions` of the aggregates."""
    if shape is Shape.AGGREGATE:
        outputs = ", ".join(f"{function}(c{number})" for number, function in enumerate(functions, start=1))
        return whole, f"SELECT {outputs} FROM ({parts}) AS p"
    together = f"SELECT DISTINCT * FROM ({parts}) AS p" if shape is Shape.DISTINCT else parts
    return DIGEST.format(sql=whole), DIGEST.format(sql=together)


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
