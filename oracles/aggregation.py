"""Aggregation: whether an expression makes one row of many, though no aggregate may be in sight.

An aggregate belongs to the query that its columns come from: in `SELECT (SELECT max(a.x)) FROM a` to the outer one.
"""

from typing import Any

from pglast.visitors import Visitor

from oracles.determinism import AGGREGATES, calls, name_of
from oracles.query_names import names_in


def aggregates(expression: Any) -> bool:
    """Tell whether the expression calls an aggregate, or a subquery in it may call one that belongs to its query."""
    links = names_in(expression).links
    return calls(expression, AGGREGATES) or any(_reaches_out(link.subselect) for link in links)


def _reaches_out(select: Any) -> bool:
    """Tell whether an aggregate is of columns alone that are not known to be of this query or one within it."""
    aliases, called = names_in(select, deep=True).aliases, _Called()
    called(select)
    return any(named and named.isdisjoint(aliases) for named in called.columns_of)


class _Called(Visitor):
    """The relations that columns are named with in each aggregate's call."""

    def __init__(self) -> None:
        super().__init__()
        self.columns_of: list[set[str]] = []

    def visit_FuncCall(self, _ancestors: Any, node: Any) -> None:
        if name_of(node) in AGGREGATES:
            self.columns_of.append(names_in(node).columns_of)
