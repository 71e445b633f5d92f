"""EET, equivalent expression transformation: equivalent expressions must not change the rows of a query.

Jiang and Su, "Detecting Logic Bugs in Database Engines via Equivalent Expression Transformation", OSDI 2024. Each
deterministic SELECT qualifies. All its conditions, also those of subqueries, and the values that it returns are
replaced by equivalent expressions.

For any condition r, `r OR NOT r OR r IS NULL` is a tautology and `r AND NOT r AND r IS NOT NULL` a contradiction. The
planner does not simplify them, because r uses the query's own columns.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Final

from pglast.enums import JoinType, SetOperation

from oracles.framework.canaries import canary_case, query
from oracles.framework.metamorphic import Metamorphic
from oracles.framework.relations import ArmRuns, MetamorphicRelation
from oracles.model.oracle import Canary, Sample
from oracles.sql.building import all_of, columns_in, conjuncts, expression, has_subquery, printed, text_of
from oracles.sql.core import groups
from oracles.sql.determinism import SET_RETURNING, calls, deterministic_select
from oracles.sql.reading import Reader
from oracles.sql.total_order import is_star

CACHED: Final = 4096  # statements
_TAUTOLOGY: Final = "(({r}) OR NOT ({r}) OR ({r}) IS NULL)"
_CONTRADICTION: Final = "(({r}) AND NOT ({r}) AND ({r}) IS NOT NULL)"

_PLACE: Final = re.compile(r"\bplace_of_expression_(\d+)\b")

# Forms that are equivalent to a condition p. The first two use it once, and remain usable as join conditions.
_KEPT: Final = ("({p}) AND {true}", "NOT (NOT ({p}))")
_WRAPPED: Final = (
    "({p}) OR {false}",
    "CASE WHEN {true} THEN ({p}) ELSE NULL END",
    "CASE WHEN {false} THEN NULL ELSE ({p}) END",
)
_REPEATED: Final = (
    "CASE WHEN {false} THEN NOT ({p}) ELSE ({p}) END",
    "CASE WHEN {r} THEN ({p}) ELSE ({p}) END",
)
_VALUES: Final = (
    "CASE WHEN {true} THEN ({p}) ELSE NULL END",
    "CASE WHEN {false} THEN NULL ELSE ({p}) END",
    "CASE WHEN {r} THEN ({p}) ELSE ({p}) END",
)


@lru_cache(CACHED)
def transformed(sql: str) -> str:
    """Return the query with its conditions and returned values transformed; "" if there is nothing to transform."""
    statement = deterministic_select(sql)
    if statement is None:
        return ""
    transformer = _Transformer(sql)
    transformer.values_of(statement)
    transformer(statement)
    return transformer.filled(printed(statement)) if transformer.count else ""


class _Transformer(Reader):
    """A visitor that transforms each query level, from the outermost inwards.

    The choice of forms depends on the query's text alone.
    """

    def __init__(self, sql: str) -> None:
        super().__init__()
        self.count = 0
        self._sql = sql
        self._texts: list[str] = []  # of the expressions at the places

    def visit_SelectStmt(self, _ancestors: Any, node: Any) -> None:
        node.whereClause = self._conditions(node.whereClause, _KEPT + _WRAPPED)
        node.havingClause = self._conditions(node.havingClause, _KEPT + _WRAPPED)

    def visit_JoinExpr(self, _ancestors: Any, node: Any) -> None:
        if node.jointype != JoinType.JOIN_FULL:  # FULL JOIN supports hashable or mergeable conditions only
            node.quals = self._conditions(node.quals, _KEPT)

    def filled(self, sql: str) -> str:
        """Return the printed SQL with the expressions at their places; "" if a place is missing."""
        complete = len(_PLACE.findall(sql)) == len(self._texts)
        return _PLACE.sub(lambda place: self._texts[int(place[1])], sql) if complete else ""

    def values_of(self, select: Any) -> None:
        """Transform the values that the outermost query returns, unless other clauses refer to them."""
        refers = groups(select) or select.distinctClause or select.sortClause or select.op != SetOperation.SETOP_NONE
        for target in () if refers else select.targetList or ():
            if not is_star(target.val) and not calls(target.val, SET_RETURNING):
                text = text_of(target.val)
                target.val = self._changed(target.val, _VALUES, text, f"({text}) IS NULL" if text else "")

    def _conditions(self, condition: Any, forms: Sequence[str]) -> Any:
        changed = [self._condition(each, forms) for each in conjuncts(condition)]
        return all_of(*changed)

    def _condition(self, condition: Any, forms: Sequence[str]) -> Any:
        text = text_of(condition)
        if has_subquery(condition):
            return self._changed(condition, forms, text, next(_nulls(condition), ""))
        return self._changed(condition, (*forms, *_REPEATED) if len(forms) > len(_KEPT) else forms, text, text)

    def _changed(self, value: Any, forms: Sequence[str], text: str, about: str) -> Any:
        """Return the value in another form; `about` is the condition r of tautologies and contradictions.

        A value without subqueries gets a place, at which its text is put, since to print it again takes time.
        """
        if not text or not about or (has_subquery(value) and forms is _VALUES):
            return value
        self.count += 1
        chosen = hashlib.sha256(f"{self.count} {self._sql}".encode()).digest()[0] % len(forms)
        true, false = (form.format(r=about) for form in (_TAUTOLOGY, _CONTRADICTION))
        changed = forms[chosen].format(p=text, r=about, true=true, false=false)
        if has_subquery(value):
            return expression(changed)
        self._texts.append(f"({changed})")
        return expression(f"place_of_expression_{len(self._texts) - 1}")


def _nulls(value: Any) -> Iterator[str]:
    """Yield the condition IS NULL for each column that a value uses outside of subqueries."""
    return (f"{text_of(column)} IS NULL" for column in columns_in(value) if not is_star(column))


TRANSFORMED: Final = Sample("transformed", 32)


class Eet(Metamorphic):
    """Queries whose rows change with equivalent expressions."""

    name: ClassVar[str] = "eet"
    samples: ClassVar[tuple[Sample, ...]] = (TRANSFORMED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary("choose_first", canary_case(query("SELECT n FROM canary WHERE n < 3"), samples=(TRANSFORMED,))),
        Canary("lose_negated", canary_case(query("SELECT max(n) FROM canary WHERE n <= 3"), samples=(TRANSFORMED,))),
    )

    def relations(self, arm_runs: ArmRuns) -> Iterator[MetamorphicRelation]:
        """Yield the relation between the case and its transformed queries."""
        made = {position: transformed(sql) for position, sql in arm_runs.exact_queries().items()}
        changed = {position: sql for position, sql in made.items() if sql}
        yield from arm_runs.relation_to_case("an equivalent expression changes rows", changed)
