"""Repair: changes of a statement's syntax tree that remove nondeterminism, where possible.

LIMIT and DISTINCT ON get a total order: ORDER BY with all output columns. An aggregate that depends on the order of
rows gets an ORDER BY of its arguments. TABLESAMPLE is dropped. A call of an unfit function may become a NULL of the
same type.
"""

from functools import cache
from typing import Any, Final

import pglast
from pglast import ast
from pglast.visitors import Visitor

from fuzz.sources.determinism.catalog import Catalog

# Pseudo-types that NULL cannot be cast to.
_TYPELESS: Final = ("any", "void", "trigger", "event_trigger", "internal", "record")


def repair(statement: Any, catalog: Catalog, *, without_calls: bool) -> bool:
    """Repair a syntax tree in place, and return whether it changed.

    With `without_calls`, calls of unfit functions become NULL.
    """
    visitor = _Repair(catalog, without_calls=without_calls)
    visitor(statement)
    return visitor.changed


class _Repair(Visitor):
    def __init__(self, catalog: Catalog, *, without_calls: bool) -> None:
        super().__init__()
        self._catalog = catalog
        self._without_calls = without_calls
        self.changed = False

    def visit_RangeTableSample(self, _ancestors: Any, node: Any) -> Any:
        self.changed = True
        return node.relation

    def visit_FuncCall(self, _ancestors: Any, node: Any) -> Any:
        unfit = self._catalog.unfit(str(node.funcname[-1].sval), len(node.args or ()))
        if unfit and all(function.kind == "a" for function in unfit) and not node.over:
            self._order(node)
            return None
        types = {function.returns for function in unfit}
        if not self._without_calls or len(types) != 1 or min(types).startswith(_TYPELESS):
            return None
        self.changed = True
        return _null_of(min(types))

    def _order(self, call: Any) -> None:
        if not call.agg_order and not call.agg_distinct and call.args:
            self.changed = True
            call.agg_order = tuple(map(_sorted_by, call.args))

    def visit_SelectStmt(self, _ancestors: Any, node: Any) -> None:
        cut = node.limitCount is not None or node.limitOffset is not None
        distinct_on = tuple(filter(None, node.distinctClause or ()))
        if not cut and not distinct_on:
            return
        self.changed = True
        columns = _columns(node)
        if columns is None:
            node.limitCount = node.limitOffset = None
            return
        order = tuple(map(_sorted_by, distinct_on)) if distinct_on and not node.sortClause else ()
        positions = tuple(
            _sorted_by(ast.A_Const(isnull=False, val=ast.Integer(number + 1))) for number in range(columns)
        )
        node.sortClause = (*(node.sortClause or order), *positions)


def _columns(select: Any) -> int | None:
    """Return the number of columns of a query, or None if its text does not determine it."""
    while select.larg is not None:
        select = select.larg
    if select.valuesLists:
        return len(select.valuesLists[0])
    targets = select.targetList or ()
    return None if any(_is_star(target.val) for target in targets) else len(targets)


def _is_star(value: Any) -> bool:
    parts: Any = getattr(value, "indirection", None) or getattr(value, "fields", None) or (None,)
    return isinstance(parts[-1], ast.A_Star)


def _sorted_by(expression: Any) -> Any:
    return ast.SortBy(
        node=expression,
        sortby_dir=pglast.enums.SortByDir.SORTBY_DEFAULT,
        sortby_nulls=pglast.enums.SortByNulls.SORTBY_NULLS_DEFAULT,
    )


@cache
def _null_of(returns: str) -> Any:
    """Return the syntax tree of a NULL of this type. It is shared, so callers must not change it."""
    statement: Any = pglast.parse_sql(f"SELECT CAST(NULL AS {returns})")[0].stmt
    return statement.targetList[0].val
