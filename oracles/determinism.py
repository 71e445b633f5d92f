"""Determinism: whether a query returns the same rows each time it runs, as far as its text can tell.

What it calls must be known here, and LIMIT must cut, and an array hold, what ORDER BY wholly orders. As everywhere,
rows that compare as equal are taken to be identical, and sums to be of no floating-point numbers: generators see to
that.
"""

from collections.abc import Collection
from functools import lru_cache
from typing import Any, Final

from pglast import ast
from pglast.enums import SubLinkType
from pglast.visitors import Skip, Visitor

from oracles.parsing import trees
from oracles.total_order import is_cut, is_total

CACHED: Final = 4096  # statements

# Their result does not depend on the order of rows.
AGGREGATES: Final = frozenset({"avg", "bool_and", "bool_or", "count", "every", "max", "min", "stddev", "sum"})
SET_RETURNING: Final = frozenset({"generate_series", "unnest"})
_SCALARS: Final = frozenset(
    {
        *("abs", "array_length", "ascii", "btrim", "chr", "hashtext", "hashtextextended", "length", "octet_length"),
        *("concat", "date_part", "initcap", "left", "lower"),
        *("lpad", "ltrim", "md5", "mod", "position", "repeat", "replace", "reverse", "right", "round", "rpad", "rtrim"),
        *("sign", "split_part", "strpos", "substr", "substring", "to_hex", "translate", "trunc", "upper"),
    }
)
_KNOWN: Final = AGGREGATES | SET_RETURNING | _SCALARS
_SYSTEM_SCHEMAS: Final = frozenset({"information_schema", "pg_catalog"})
_SYSTEM_COLUMNS: Final = frozenset({"cmax", "cmin", "ctid", "tableoid", "xmax", "xmin"})


@lru_cache(CACHED)
def is_known(sql: str) -> bool:
    """Tell whether it is a statement that is known to return the same each time."""
    statements = trees(sql)
    return len(statements) == 1 and is_deterministic(statements[0].stmt)


def is_deterministic(statement: Any) -> bool:
    """Tell whether all in the statement is known to give the same each time."""
    return _search(statement, _Doubts())


def calls(expression: Any, names: Collection[str]) -> bool:
    """Tell whether the expression itself, not a query within it, calls one of these functions."""
    return not _search(expression, _Calls(names))


def has_parameters(statement: Any) -> bool:
    """Tell whether $1 or others occur."""
    return not _search(statement, _Parameters())


class _Found(Exception):  # ends a search
    """What was looked for is there."""


def _search(node: Any, visitor: Visitor) -> bool:
    """Tell whether the visitor finds nothing."""
    try:
        visitor(node)
    except _Found:
        return False
    return True


def name_of(call: Any) -> str:
    """Return the name of the function that is called, without its schema."""
    return str(call.funcname[-1].sval)


class _Calls(Visitor):
    def __init__(self, names: Collection[str]) -> None:
        super().__init__()
        self._names = names

    def visit_FuncCall(self, _ancestors: Any, node: Any) -> None:
        if name_of(node) in self._names:
            raise _Found

    def visit_SubLink(self, _ancestors: Any, _node: Any) -> Any:
        return Skip


class _Parameters(Visitor):
    def visit_ParamRef(self, _ancestors: Any, _node: Any) -> None:
        raise _Found


class _Doubts(Visitor):
    def visit(self, _ancestors: Any, node: Any) -> None:
        if isinstance(node, _DOUBTFUL):
            raise _Found

    def visit_FuncCall(self, _ancestors: Any, node: Any) -> None:
        if name_of(node) not in _KNOWN or node.over is not None:
            raise _Found

    def visit_SelectStmt(self, _ancestors: Any, node: Any) -> None:
        first_of_each = any(node.distinctClause or ())  # DISTINCT ON names what it is on
        if first_of_each or (is_cut(node) and not is_total(node)):
            raise _Found

    def visit_SubLink(self, _ancestors: Any, node: Any) -> None:
        """An array holds rows in the order in which they come."""
        is_array, rows = node.subLinkType == SubLinkType.ARRAY_SUBLINK, node.subselect
        if is_array and (rows.fromClause or rows.valuesLists or rows.larg) and not is_total(rows):
            raise _Found

    def visit_ColumnRef(self, _ancestors: Any, node: Any) -> None:
        if getattr(node.fields[-1], "sval", "") in _SYSTEM_COLUMNS:
            raise _Found

    def visit_RangeVar(self, _ancestors: Any, node: Any) -> None:
        """Catalogs and what shows the server's state, such as pg_settings, are not the case's own data."""
        if node.relname.startswith("pg_") or node.schemaname in _SYSTEM_SCHEMAS:
            raise _Found


_DOUBTFUL: Final = (
    *(ast.DeleteStmt, ast.InsertStmt, ast.IntoClause, ast.LockingClause, ast.MergeStmt, ast.UpdateStmt),
    *(ast.JsonArrayAgg, ast.JsonArrayQueryConstructor, ast.JsonObjectAgg, ast.RangeTableSample, ast.SQLValueFunction),
)
