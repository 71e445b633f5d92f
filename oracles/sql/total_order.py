"""Total order: whether a query's text determines the rows that LIMIT keeps."""

from collections.abc import Sequence
from typing import Any

from pglast import ast
from pglast.enums import SetOperation


def is_cut(select: Any) -> bool:
    """Return whether LIMIT or OFFSET may omit rows."""
    return select.limitCount is not None or not _skips_nothing(select.limitOffset)


def is_total(select: Any) -> bool:
    """Return whether ORDER BY names all values that the query returns, so that rows with equal keys are equal."""
    shown = shown_targets(select)
    if shown is None or not select.sortClause:
        return False
    keys = [key.node for key in select.sortClause]
    positions = {integer(key) for key in keys}
    return all(
        position in positions or any(_names(key, target, shown) for key in keys)
        for position, target in enumerate(shown, start=1)
    )


def shown_targets(select: Any) -> list[Any] | None:
    """Return the targets of the query, including those behind a star; None if they are unknown."""
    if select.op != SetOperation.SETOP_NONE:
        return shown_targets(select.larg)
    targets: Any = select.targetList or ()
    if select.valuesLists or any(_is_fields(target.val) for target in targets):
        return None
    if not any(is_star(target.val) for target in targets):
        return list(targets)
    only: Any = select.fromClause[0] if len(targets) == len(select.fromClause or ()) == 1 else None
    return shown_targets(only.subquery) if isinstance(only, ast.RangeSubselect) else None


def is_star(value: Any) -> bool:
    """Return whether the expression is a star, with or without a relation."""
    return isinstance(value, ast.ColumnRef) and isinstance((value.fields or (None,))[-1], ast.A_Star)


def _is_fields(value: Any) -> bool:
    """Return whether the expression is all fields of a composite value: `(value).*`."""
    return isinstance(value, ast.A_Indirection) and isinstance((value.indirection or (None,))[-1], ast.A_Star)


def _names(key: Any, target: Any, shown: Sequence[Any]) -> bool:
    """Return whether a sort key is the value of a target. Names of output columns hide those of input columns."""
    fields: Any = key.fields if isinstance(key, ast.ColumnRef) else ()
    if len(fields) != 1:
        return bool(target.val in (key, _written(key)))
    names = [_output_name(each) for each in shown]
    name = getattr(fields[0], "sval", "")
    if name in names:
        return _output_name(target) == name
    return None not in names and bool(target.val == key)


def _output_name(target: Any) -> str | None:
    """Return the name of an output column; None if it is that of a part of an expression (FigureColname)."""
    if target.name is not None:
        return str(target.name)
    parts: Any = getattr(target.val, "fields", None) or getattr(target.val, "funcname", None)
    return str(parts[-1].sval) if parts else None


def _written(key: Any) -> Any:
    """Return the value v of a key `v::text COLLATE "C"`, which orders by the printed bytes; None for other keys."""
    text: Any = getattr(key, "arg", None)
    if not isinstance(key, ast.CollateClause) or not isinstance(text, ast.TypeCast):
        return None
    collation: Any = key.collname
    named: Any = text.typeName
    return text.arg if (collation[-1].sval, named.names[-1].sval) == ("C", "text") else None


def integer(node: Any) -> int | None:
    """Return the value of an integer literal; None for any other node."""
    return getattr(node.val, "ival", None) if isinstance(node, ast.A_Const) else None


def _skips_nothing(offset: Any) -> bool:
    """Return whether there is no OFFSET, or OFFSET 0, which only prevents the planner from merging a subquery."""
    return offset is None or integer(offset) == 0
