"""Plain SELECT: the part of a query that returns rows of a join as they are, on top or aggregated as a whole.

It has no aggregates, grouping, DISTINCT, LIMIT, locks or set operations of its own, so it may be exchanged for another
query with the same rows. What a query aggregates without having one is put into one first.
"""

from typing import Any, Final

from pglast import ast
from pglast.enums import SetOperation

from oracles.aggregation import aggregates
from oracles.determinism import AGGREGATES, name_of
from oracles.parsing import fresh_select
from oracles.query_building import snippet

_RESTRICTING: Final = (
    *("distinctClause", "intoClause", "groupClause", "havingClause", "windowClause", "valuesLists", "limitOffset"),
    *("limitCount", "lockingClause"),
)


def parsed(sql: str) -> Any:
    """Return the tree of a single SELECT, else None."""
    only = fresh_select(sql)
    if only is not None:
        _lift(only)
    return only


def plain(select: Any) -> Any:
    """Return the plain SELECT that this one is, or that it aggregates as a whole; None if there is none."""
    if not _is_simple(select):
        return None
    if not any(map(aggregates, (*(select.targetList or ()), *(select.sortClause or ())))):
        return select
    return plain(select.fromClause[0].subquery) if _is_of_subquery(select) else None


def _is_simple(select: Any) -> bool:
    restricted = any(getattr(select, name) for name in _RESTRICTING)
    return bool(select.fromClause) and not restricted and select.op == SetOperation.SETOP_NONE


def _is_of_subquery(select: Any) -> bool:
    """Tell whether it takes all of one subquery, and nothing else."""
    only = select.fromClause[0] if len(select.fromClause) == 1 else None
    return isinstance(only, ast.RangeSubselect) and not (only.lateral or select.whereClause)


def _lift(select: Any) -> None:
    """Have a query that returns nothing but aggregates take their arguments from a plain subquery."""
    targets: Any = select.targetList or ()
    if not (targets and _is_simple(select) and all(_is_aggregate(target.val) for target in targets)):
        return
    if _is_of_subquery(select):
        _lift(select.fromClause[0].subquery)
        return
    lifted = snippet("SELECT FROM (SELECT) AS q")
    below = lifted.fromClause[0].subquery
    columns = []
    for number, target in enumerate(targets, start=1):
        if target.val.args:
            columns.append(ast.ResTarget(name=f"c{number}", val=target.val.args[0]))
            target.val.args = (_column(number),)
    below.targetList = tuple(columns) or None
    below.fromClause, below.whereClause = select.fromClause, select.whereClause
    select.fromClause, select.whereClause = lifted.fromClause, None


def _column(number: int) -> Any:
    return snippet(f"SELECT c{number}").targetList[0].val


def _is_aggregate(expression: Any) -> bool:
    """Tell whether it is a plain aggregate of one expression, or of rows."""
    if not isinstance(expression, ast.FuncCall) or expression.over or expression.agg_filter or expression.agg_order:
        return False
    return name_of(expression) in AGGREGATES and len(expression.args or ()) <= 1
