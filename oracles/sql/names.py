"""Query names: the relations, aliases and column qualifiers of a query, its subqueries, and its aggregates.

An aggregate belongs to the query of its columns: in `SELECT (SELECT max(a.x)) FROM a`, to the outer one.
"""

from typing import Any

from pglast import ast
from pglast.visitors import Skip

from oracles.sql.determinism import AGGREGATES, calls, name_of
from oracles.sql.reading import Reader


def names_in(node: Any, *, deep: bool = False) -> "_Names":
    """Return the names of a query and the outermost subqueries of its expressions; `deep` includes inner ones."""
    names = _Names(deep=deep)
    names(node)
    return names


class _Names(Reader):
    def __init__(self, *, deep: bool) -> None:
        super().__init__()
        self.links: list[Any] = []
        self.common: set[str] = set()
        self.tables: set[str] = set()
        self.aliases: set[str] = set()
        self.columns_of: set[str] = set()  # qualifiers of columns; "" for none
        self._deep = deep

    def visit_SubLink(self, _ancestors: Any, node: Any) -> Any:
        self.links.append(node)
        return None if self._deep else Skip

    def visit_CommonTableExpr(self, _ancestors: Any, node: Any) -> None:
        self.common.add(node.ctename)

    def visit_RangeVar(self, _ancestors: Any, node: Any) -> None:
        self.tables.add(node.relname)
        self.aliases.add(node.relname)

    def visit_Alias(self, _ancestors: Any, node: Any) -> None:
        self.aliases.add(node.aliasname)

    def visit_ColumnRef(self, _ancestors: Any, node: Any) -> None:
        if len(node.fields) > 1 or not isinstance(node.fields[0], ast.A_Star):
            self.columns_of.add(node.fields[0].sval if len(node.fields) > 1 else "")


def aggregates(expression: Any) -> bool:
    """Return whether the expression calls an aggregate, or a subquery in it may call one of the outer query."""
    links = names_in(expression).links
    return calls(expression, AGGREGATES) or any(_reaches_out(link.subselect) for link in links)


def _reaches_out(select: Any) -> bool:
    """Return whether an aggregate uses only columns that are not known to belong to this query or an inner one."""
    aliases, called = names_in(select, deep=True).aliases, _Called()
    called(select)
    return any(named and named.isdisjoint(aliases) for named in called.columns_of)


class _Called(Reader):
    """The qualifiers of columns in each aggregate call."""

    def __init__(self) -> None:
        super().__init__()
        self.columns_of: list[set[str]] = []

    def visit_FuncCall(self, _ancestors: Any, node: Any) -> None:
        if name_of(node) in AGGREGATES:
            self.columns_of.append(names_in(node).columns_of)
