"""Optimization fence: a table and the subquery of all its rows, which the planner cannot merge, are interchangeable.

`OFFSET 0` keeps the planner from merging `(SELECT * FROM t OFFSET 0)` with the query around it. So no condition reaches
the table: no index, partition or join order follows from it, no join is removed, and no column is known to be unique.
In the query itself, the planner may do all of this. Each table of FROM is replaced, also in subqueries.

These stay, because the subquery would mean something else there:

- All tables, if the query has WITH RECURSIVE, uses a table's row as a value (`SELECT t FROM t`), or names the schema
  of a column.
- Tables of a query that groups rows, if the case has a primary key: columns that depend on the key need not be grouped.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar, Final

from pglast import ast

from oracles.framework.canaries import canary_case, query
from oracles.framework.metamorphic import Metamorphic
from oracles.framework.relations import ArmRuns, MetamorphicRelation
from oracles.model.oracle import Canary, Sample
from oracles.sql.building import fresh_select, printed, snippet
from oracles.sql.core import groups
from oracles.sql.determinism import deterministic_select
from oracles.sql.reading import Reader
from oracles.sql.total_order import is_star

CACHED: Final = 4096  # statements
FENCED: Final = Sample("fenced", 32)
_FENCE: Final = "SELECT * FROM (SELECT * FROM t OFFSET 0) AS t"


@lru_cache(CACHED)
def fenced(sql: str, *, keeps_grouped: bool = False) -> str:
    """Return the query with subqueries in place of tables; "" if there are none.

    Queries that group rows keep their tables if `keeps_grouped`.
    """
    statement = deterministic_select(sql)
    if statement is None:
        return ""
    parts = _Parts()
    parts(statement)
    if not parts.allow_fences():
        return ""
    for select in parts.selects:
        if not (keeps_grouped and groups(select)):
            select.fromClause = tuple(map(_fenced, select.fromClause))
    return printed(statement) if statement != fresh_select(sql) else ""


def _fenced(item: Any) -> Any:
    """Return an item of FROM with subqueries in place of its tables; subqueries that it has already stay."""
    if isinstance(item, ast.JoinExpr):
        item.larg, item.rarg = _fenced(item.larg), _fenced(item.rarg)
    if not isinstance(item, ast.RangeVar):
        return item
    fence = snippet(_FENCE).fromClause[0]
    fence.alias, item.alias = item.alias or ast.Alias(aliasname=item.relname), None
    fence.subquery.fromClause = (item,)
    return fence


class _Parts(Reader):
    """The queries of a statement that have FROM, and the reasons not to replace their tables."""

    def __init__(self) -> None:
        super().__init__()
        self.selects: list[Any] = []
        self._tables: set[str] = set()  # by alias
        self._rows: set[str] = set()  # names that may stand for a row
        self._forbids = False

    def allow_fences(self) -> bool:
        """Return whether the tables may be replaced."""
        return not self._forbids and self._rows.isdisjoint(self._tables)

    def visit_SelectStmt(self, _ancestors: Any, node: Any) -> None:
        if node.fromClause:
            self.selects.append(node)

    def visit_WithClause(self, _ancestors: Any, node: Any) -> None:
        self._forbids |= bool(node.recursive)

    def visit_RangeVar(self, _ancestors: Any, node: Any) -> None:
        self._tables.add(node.alias.aliasname if node.alias else node.relname)

    def visit_ColumnRef(self, ancestors: Any, node: Any) -> None:
        shows_columns = is_star(node) and isinstance(ancestors.node, ast.ResTarget)
        if not shows_columns and (len(node.fields) == 1 or is_star(node)):
            self._rows.add(getattr(node.fields[0], "sval", ""))
        self._forbids |= len(node.fields) > 2


class OptimizationFence(Metamorphic):
    """Queries whose rows change when the planner cannot see their tables."""

    name: ClassVar[str] = "optimization_fence"
    samples: ClassVar[tuple[Sample, ...]] = (FENCED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        # the fault changes conditions at the level of `canary` and below; the fence leaves none there
        Canary("keep_unknown", canary_case(query("SELECT n FROM canary WHERE nullif(n, 2) < 4"), samples=(FENCED,))),
    )

    def relations(self, arm_runs: ArmRuns) -> Iterator[MetamorphicRelation]:
        """Yield the relation between the case and its queries over subqueries."""
        keyed = any("PRIMARY KEY" in step.sql.upper() for step in arm_runs.case.all_steps)
        made = {step: fenced(sql, keeps_grouped=keyed) for step, sql in arm_runs.exact_queries().items()}
        changed = {step: sql for step, sql in made.items() if sql}
        yield from arm_runs.relation_to_case("rows change when tables become subqueries", changed)
