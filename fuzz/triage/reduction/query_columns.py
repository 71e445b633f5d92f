"""Columns of a query, and their removal in all places that depend on their positions.

These are the targets, or the values of each row, on all sides of UNION; numbers in ORDER BY and GROUP BY; and lists of
column names outside of the query.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pglast import ast
from pglast.enums import SetOperation

from fuzz.triage.reduction.trees import altered, constant
from oracles.sql.total_order import integer, is_star

# Nodes that name a query's columns: the attribute with the names, and the one with the query.
_NAMING: dict[type[Any], tuple[str, str]] = {
    ast.InsertStmt: ("cols", "selectStmt"),
    ast.CommonTableExpr: ("aliascolnames", "ctequery"),
    ast.ViewStmt: ("aliases", "query"),
}


@dataclass(frozen=True, slots=True)
class RemovableItems:
    """The number of removable items of a node, and the function that returns the node with some of them only."""

    count: int
    with_only: Callable[[Sequence[int]], Any]


def width(query: Any) -> int | None:
    """Return the number of columns of a query; None if its text does not determine it."""
    if not isinstance(query, ast.SelectStmt):
        return None
    if query.op != SetOperation.SETOP_NONE:
        return _same({width(query.larg), width(query.rarg)})
    if query.valuesLists:
        return _same(set(map(len, query.valuesLists)))
    targets: Any = query.targetList or ()
    return None if any(is_star(target.val) for target in targets) else len(targets)


def _same(widths: set[Any]) -> int | None:
    return widths.pop() if len(widths) == 1 else None


def with_columns(query: Any, kept: Sequence[int]) -> Any:
    """Return the query with the columns at these positions only."""
    if query.op != SetOperation.SETOP_NONE:
        sides = {"larg": with_columns(query.larg, kept), "rarg": with_columns(query.rarg, kept)}
    elif query.valuesLists:
        sides = {"valuesLists": tuple(tuple(row[position] for position in kept) for row in query.valuesLists)}
    else:
        sides = {"targetList": tuple(query.targetList[position] for position in kept)}
    orders = {name: _renumbered(getattr(query, name), kept) for name in ("groupClause", "sortClause")}
    return altered(query, **sides, **orders)


def _renumbered(clause: Any, kept: Sequence[int]) -> Any:
    """Return ORDER BY or GROUP BY with adjusted column numbers; those of removed columns are omitted."""
    return tuple(filter(None, (_numbered(item, kept) for item in clause or ()))) or None


def _numbered(item: Any, kept: Sequence[int]) -> Any:
    number = integer(item.node if isinstance(item, ast.SortBy) else item)
    if number is None:
        return item
    if number - 1 not in kept:
        return None
    other = constant(ast.Integer(kept.index(number - 1) + 1))
    return altered(item, node=other) if isinstance(item, ast.SortBy) else other


def columns_at(node: Any, above: Any) -> RemovableItems | None:
    """Return the columns that can be removed at a node; None if there are none. `above` is the node around it.

    Columns are removed at the node that names a query's columns, or else at the query itself.
    """
    if isinstance(node, ast.SelectStmt):
        apart = _is_side(node, above) or _names(above)
        count = None if apart else width(node)
        return None if count is None else RemovableItems(count, partial(with_columns, node))
    names = _names(node)
    return (
        RemovableItems(len(names), partial(named_columns, node))
        if names and width(_query(node)) == len(names)
        else None
    )


def named_columns(node: Any, kept: Sequence[int]) -> Any:
    """Return a node that names a query's columns, with the columns at these positions only."""
    names = tuple(_names(node)[position] for position in kept)
    query = with_columns(_query(node), kept)
    if isinstance(node, ast.RangeSubselect):
        return altered(node, alias=altered(node.alias, colnames=names), subquery=query)
    attribute, of_query = _NAMING[type(node)]
    return altered(node, **{attribute: names, of_query: query})


def _is_side(query: Any, above: Any) -> bool:
    return isinstance(above, ast.SelectStmt) and (above.larg is query or above.rarg is query)


def _names(node: Any) -> tuple[Any, ...]:
    if isinstance(node, ast.RangeSubselect):
        return (node.alias and node.alias.colnames) or ()
    return getattr(node, _NAMING[type(node)][0]) or () if type(node) in _NAMING else ()


def _query(node: Any) -> Any:
    return node.subquery if isinstance(node, ast.RangeSubselect) else getattr(node, _NAMING[type(node)][1])
