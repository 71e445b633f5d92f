"""Passes that cut syntax trees: hierarchical delta debugging (Misherghi and Su, ICSE 2006).

The passes work level by level, so that the largest parts are removed first. They begin with the last statement. A
node is replaced with one of its own parts or a constant, lists are shortened, and optional parts are removed. Apart
from columns that belong together, the passes ignore the meaning of SQL; an invalid statement is not interesting.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from pglast import ast
from pglast.enums import CTEMaterialize, JoinType, LimitOption, SortByDir, SortByNulls

from fuzz.triage.reduction.columns import RemovableItems, columns_at, width, with_columns
from fuzz.triage.reduction.deltas import shortest, shortest_in_parts
from fuzz.triage.reduction.problem import Problem, Statement, statements
from fuzz.triage.reduction.trees import Path, altered, constant, within
from oracles.model.case import Kind
from oracles.sql.determinism import AGGREGATES, calls

_QUERIES = (ast.SelectStmt,)
_SOURCES = (
    *(ast.JoinExpr, ast.RangeFunction, ast.RangeSubselect, ast.RangeTableFunc, ast.RangeTableSample, ast.RangeVar),
)
_VALUES = (
    *(ast.A_ArrayExpr, ast.A_Const, ast.A_Expr, ast.A_Indirection, ast.BoolExpr, ast.BooleanTest, ast.CaseExpr),
    *(ast.CoalesceExpr, ast.CollateClause, ast.ColumnRef, ast.FuncCall, ast.GroupingFunc, ast.MinMaxExpr, ast.NullTest),
    *(ast.ParamRef, ast.RowExpr, ast.SQLValueFunction, ast.SubLink, ast.TypeCast, ast.XmlExpr),
)
_CONDITIONS = (ast.BoolExpr, ast.BooleanTest, ast.NullTest)
_KINDS = (_QUERIES, _SOURCES, _VALUES)
_OPERATORS = (ast.A_Expr, ast.BoolExpr, ast.BooleanTest, ast.CollateClause, ast.NullTest, ast.TypeCast)
# A query without columns is not simpler, and VACUUM without tables takes those of all cases.
_NEEDED = ("targetList", "rels")
# Enumerated attributes, and their default, which is the first value.
_UNSAID: dict[type[Any], Any] = {
    kind: kind(0) for kind in (CTEMaterialize, JoinType, LimitOption, SortByDir, SortByNulls)
}


def replacements(node: Any, above: Any) -> Iterator[Any]:
    """Yield possible replacements of a node; `above` is the node around it."""
    kind = next((kind for kind in _KINDS if isinstance(node, kind)), ())
    if kind is _VALUES:
        yield from _constants(node, above)
    for part in _nearest(node, kind) if kind and arguments_at(node) is None else ():
        if kind is _SOURCES and getattr(node, "alias", None) and "alias" in type(part).__slots__:
            yield altered(part, alias=node.alias)
        if kind is _QUERIES and node.withClause and not part.withClause:
            yield altered(part, withClause=node.withClause)
        yield part


def _constants(node: Any, above: Any) -> Iterator[Any]:
    if isinstance(node, ast.A_Const):
        return  # the pass `shorten_literals` shortens literals
    if isinstance(above, ast.JoinExpr):
        yield constant(ast.Boolean(boolval=True))
    elif not isinstance(node, _CONDITIONS):
        yield constant(ast.Integer(1))
        if not isinstance(node, ast.ColumnRef):
            yield ast.A_Const(isnull=True)


def _nearest(whole: Any, kind: tuple[type[Any], ...]) -> Iterator[Any]:
    """Yield the outermost parts of a kind; values in subqueries do not belong to a query."""
    for _, part in within(whole):
        if isinstance(part, kind):
            yield part
        elif not isinstance(part, (*_QUERIES, *_SOURCES) if kind is _VALUES else _VALUES if kind is _SOURCES else ()):
            yield from _nearest(part, kind)


def arguments_at(node: Any) -> RemovableItems | None:
    """Return the arguments of AND or OR; a single remaining one replaces the node. None for any other node."""
    arguments: Any = node.args if isinstance(node, ast.BoolExpr) else ()
    if len(arguments) < 2:
        return None

    def with_only(kept: Sequence[int]) -> Any:
        left = tuple(arguments[position] for position in kept)
        return altered(node, args=left) if len(left) > 1 else left[0]

    return RemovableItems(len(arguments), with_only)


def lessened(node: Any) -> Iterator[Any]:
    """Yield the node without each of its optional parts, and with the default of each attribute."""
    if isinstance(node, _OPERATORS):
        return
    for name in node:
        value = getattr(node, name)
        if name in _NEEDED:
            continue
        if isinstance(value, ast.Node | tuple) or (isinstance(node, ast.ResTarget) and name == "name" and value):
            yield altered(node, **{name: None})
        elif value is True and not isinstance(node, ast.Boolean):
            yield altered(node, **{name: False})
        elif type(value) in _UNSAID and value != _UNSAID[type(value)]:
            yield altered(node, **{name: _UNSAID[type(value)]})
    if isinstance(node, ast.SelectStmt):
        yield from _ungrouped(node)


def _ungrouped(select: Any) -> Iterator[Any]:
    """Yield the query without LIMIT, with and without its ORDER BY; and without GROUP BY and its columns."""
    if select.limitCount or select.limitOffset:
        uncut = altered(select, limitCount=None, limitOffset=None, limitOption=LimitOption.LIMIT_OPTION_DEFAULT)
        yield altered(uncut, sortClause=None)
        yield uncut
    if select.groupClause and width(select):
        kept = [at for at, target in enumerate(select.targetList) if calls(target.val, AGGREGATES)]
        if kept and len(kept) < len(select.targetList):
            yield altered(with_columns(select, kept), groupClause=None)


# Lists that are names, or whose items depend on others; the passes shorten them together with the node around them.
_LEFT: Final = frozenset(
    {"aliascolnames", "aliases", "colnames", "cols", "fields", "funcname", "name", "names", "valuesLists"}
)


def prune_queries(problem: Problem) -> None:
    """Cut the queries, so that parts of the scene become unused."""
    for statement in statements(problem, Kind.QUERY):
        _prune(statement)


def prune_commands(problem: Problem) -> None:
    """Cut all other statements."""
    for statement in statements(problem, Kind.COMMAND, Kind.COPY_IN, Kind.COPY_OUT):
        _prune(statement)


def _prune(statement: Statement) -> None:
    """Try to cut all parts once. The replacement of a node is tried again; the parts before it are unchanged."""
    done = 0
    while done < len(found := statement.parts):
        path, part = found[done]
        before = statement.sql
        if isinstance(part, ast.Node):
            _cut(statement, path, part)
            done += statement.sql == before
        else:
            _shorten(statement, path, part)
            done += 1


def _shorten(statement: Statement, path: Path, items: tuple[Any, ...]) -> None:
    name = path[-1]
    shown = isinstance(statement.above(path), ast.SelectStmt) and name == "targetList"
    if not isinstance(name, str) or name in _LEFT or shown:
        return

    def is_interesting(kept: tuple[Any, ...]) -> bool:
        may_be_cut = bool(kept) or name not in _NEEDED
        return kept == items or (may_be_cut and statement.is_interesting(path, kept or None))

    shortest_in_parts(items, is_interesting)


def _cut(statement: Statement, path: Path, node: Any) -> None:
    above = statement.above(path)
    if any(statement.is_better(path, other) for other in replacements(node, above)):
        return
    before = statement.sql
    if counted := columns_at(node, above) or arguments_at(node):
        shortest(range(counted.count), partial(_still, statement, path, counted))
    if statement.sql == before:
        any(statement.is_better(path, other) for other in lessened(node))


def _still(statement: Statement, path: Path, counted: RemovableItems, kept: tuple[int, ...]) -> bool:
    """Return whether the case is interesting with these items only. At least one must stay."""
    whole = len(kept) == counted.count
    return whole or (bool(kept) and statement.is_interesting(path, counted.with_only(kept)))
