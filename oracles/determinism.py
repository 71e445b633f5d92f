"""Determinism: whether a query returns the same rows each time it runs, as far as its text can tell.

What it calls must be known here. As everywhere, rows that compare as equal are taken to be identical, and LIMIT below
ORDER BY to cut a total order: generators see to that.
"""

from collections.abc import Collection
from typing import Any, Final

from pglast import ast
from pglast.visitors import Skip, Visitor

# Their result does not depend on the order of rows, nor on that of computation; sums see below.
AGGREGATES: Final = frozenset({"bool_and", "bool_or", "count", "every", "max", "min", "sum"})
_WHOLE_NUMBERS: Final = frozenset({"ascii", "count", "hashtext", "hashtextextended", "length", "octet_length"})
_SCALARS: Final = frozenset(
    {
        *("abs", "array_length", "btrim", "chr", "concat", "date_part", "generate_series", "initcap", "left", "lower"),
        *("lpad", "ltrim", "md5", "mod", "position", "repeat", "replace", "reverse", "right", "round", "rpad", "rtrim"),
        *("sign", "split_part", "strpos", "substr", "substring", "to_hex", "translate", "trunc", "unnest", "upper"),
    }
)
_KNOWN: Final = AGGREGATES | _WHOLE_NUMBERS | _SCALARS
_SYSTEM_COLUMNS: Final = frozenset({"cmax", "cmin", "ctid", "tableoid", "xmax", "xmin"})


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


def _name(call: Any) -> str:
    return str(call.funcname[-1].sval)


class _Calls(Visitor):
    def __init__(self, names: Collection[str]) -> None:
        super().__init__()
        self._names = names

    def visit_FuncCall(self, _ancestors: Any, node: Any) -> None:
        if _name(node) in self._names:
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
        if _name(node) not in _KNOWN or node.over is not None:
            raise _Found
        if _name(node) == "sum" and not _is_whole(node.args[0]):
            raise _Found

    def visit_SelectStmt(self, _ancestors: Any, node: Any) -> None:
        cut = node.limitCount is not None or node.limitOffset is not None
        first_of_each = any(node.distinctClause or ())  # DISTINCT ON names what it is on
        if first_of_each or (cut and not node.sortClause):
            raise _Found

    def visit_ColumnRef(self, _ancestors: Any, node: Any) -> None:
        if getattr(node.fields[-1], "sval", "") in _SYSTEM_COLUMNS:
            raise _Found


def _is_whole(argument: Any) -> bool:
    """Tell whether what is summed is surely no floating-point number, whose sum depends on the order."""
    return isinstance(argument, ast.FuncCall) and _name(argument) in _WHOLE_NUMBERS


_DOUBTFUL: Final = (
    *(ast.DeleteStmt, ast.InsertStmt, ast.IntoClause, ast.LockingClause, ast.MergeStmt, ast.UpdateStmt),
    *(ast.RangeTableSample, ast.SQLValueFunction),
)
