"""Query core: the innermost SELECT that determines a query's rows, below parts that only count, order or limit them."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from pglast import ast
from pglast.enums import LimitOption, SetOperation

from oracles.sql.building import PLACE, conjuncts, fresh_select, place, printed, put
from oracles.sql.determinism import AGGREGATES, deterministic_select, is_deterministic, name_of
from oracles.sql.total_order import is_star

CACHED: Final = 4096  # statements
_ENDING = ("sortClause", "limitCount", "limitOffset")
_WHOLE = ("whereClause", "groupClause", "havingClause", "distinctClause", "windowClause", "lockingClause")


def core(sql: str) -> Any:
    """Return a new tree of the core with the query's WITH, but without ORDER BY, LIMIT and OFFSET.

    None if the text is no single SELECT, or has no core.
    """
    select = fresh_select(sql)
    if not _selects(select):
        return None
    within: Any
    while (within := _within(select)) is not None:
        if within.withClause is not None and select.withClause is not None:
            return None
        within.withClause = within.withClause or select.withClause
        select = within
    for name in _ENDING:
        setattr(select, name, None)
    select.limitOption = LimitOption.LIMIT_OPTION_DEFAULT
    return select


def deterministic_core(sql: str) -> Any:
    """Return the core if it is known to be deterministic, else None."""
    return core(sql) if _has_deterministic_core(sql) else None


@lru_cache(CACHED)
def _has_deterministic_core(sql: str) -> bool:
    select = core(sql)
    return select is not None and is_deterministic(select)


def _selects(node: Any) -> bool:
    is_select = isinstance(node, ast.SelectStmt) and node.op == SetOperation.SETOP_NONE
    return is_select and bool(node.fromClause) and not (node.intoClause or node.lockingClause)


def _within(select: Any) -> Any:
    """Return the subquery whose rows this query only returns or aggregates as a whole, if it can be a core."""
    only = select.fromClause[0] if len(select.fromClause) == 1 else None
    if not isinstance(only, ast.RangeSubselect) or only.lateral or any(getattr(select, name) for name in _WHOLE):
        return None
    targets: Any = select.targetList or ()
    shows = len(targets) == 1 and (is_star(targets[0].val) or _is_count(targets[0].val))
    if not (shows or (targets and all(_is_aggregate(target.val) for target in targets))):
        return None
    return only.subquery if _selects(only.subquery) else None


def _is_count(value: Any) -> bool:
    return isinstance(value, ast.FuncCall) and bool(value.agg_star)


def _is_aggregate(value: Any) -> bool:
    return isinstance(value, ast.FuncCall) and value.over is None and name_of(value) in AGGREGATES


def summarized(select: Any) -> tuple[Any, Any]:
    """Return the subquery of which a query only returns aggregates, at any depth, after the query right around it.

    The subquery is None if the aggregates are of something else. Without aggregates: None, and the query itself.
    """
    around, within = None, select
    while within is not None and _aggregates_all(within):
        around, only = within, within.fromClause[0] if len(within.fromClause or ()) == 1 else None
        within = only.subquery if isinstance(only, ast.RangeSubselect) else None
    return around, within


def with_derived_rows(sql: str, derive: Callable[[str], str]) -> str:
    """Return the query with its rows taken from `derive(text)`, a query around the text of one that returns these rows.

    If the query only returns aggregates of a subquery, `derive` gets the subquery instead. "" if the query is not
    deterministic, or reads no table.
    """
    query, rows = _query_and_rows(sql)
    return put(query, derive(rows)) if rows else ""


@lru_cache(CACHED)
def _query_and_rows(sql: str) -> tuple[str, str]:
    """Return the query with a place for the part that returns the rows, and this part; "" for both if there is none."""
    statement = deterministic_select(sql)
    around, select = summarized(statement)
    if around is None or select is None:
        around, select = None, statement
    if select is None or not (select.fromClause or select.larg):
        return "", ""
    rows = printed(select)
    if around is None:
        return PLACE, rows
    around.fromClause[0].subquery = place()
    return printed(statement), rows


def _aggregates_all(select: Any) -> bool:
    """Return whether the query returns one row of aggregates."""
    targets: Any = select.targetList or ()
    return bool(targets) and not select.groupClause and all(_is_aggregate(target.val) for target in targets)


def top_join(select: Any) -> Any:
    """Return the outermost join of FROM if it has a condition, and no alias that hides its tables; else None."""
    only: Any = select.fromClause[0] if len(select.fromClause) == 1 else None
    conditional = isinstance(only, ast.JoinExpr) and not only.alias and only.quals is not None
    return only if conditional and not isinstance(only.quals, ast.A_Const) else None


def restrictions(select: Any) -> list[Any]:
    """Return the conditions of WHERE; those of HAVING if the query groups rows."""
    return conjuncts(select.havingClause if groups(select) else select.whereClause)


def groups(select: Any) -> bool:
    """Return whether the query groups rows."""
    return bool(select.groupClause or select.havingClause)
