"""Aggregation: whether an expression makes one row of many, though no aggregate may be in sight.

An aggregate belongs to the query that its columns come from: in `SELECT (SELECT max(a.x)) FROM a` to the outer one.
"""

from typing import Any

from pglast.visitors import Visitor

from oracles.determinism import AGGREGATES, calls, name_of
from oracles.query_names import Names


def aggregates(expression: Any) -> bool:
    """Tell whether the expression calls an aggregate, or a subquery in it may call one that belongs to its query."""
    above = Names()
    above(expression)
    return calls(expression, AGGREGATES) or any(_reaches_out(link.subselect) for link in above.links)


def _reaches_out(select: Any) -> bool:
    """Tell whether an aggregate is of columns alone that are not known to be of this query or one within it."""
    within, called = Names(deep=True), _Called()
    within(select)
    called(select)
    return any(named and named.isdisjoint(within.aliases) for named in called.columns_of)


class _Called(Visitor):
    """The relations that columns are named with in each aggregate's call."""

    def __init__(self) -> None:
        super().__init__()
        self.columns_of: list[set[str]] = []

    def visit_FuncCall(self, _ancestors: Any, node: Any) -> None:
        if name_of(node) in AGGREGATES:
            names = Names()
            names(node)
            self.columns_of.append(names.columns_of)
