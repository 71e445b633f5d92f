"""Determinism: whether a query, according to its text, returns the same rows each time.

It may call known functions only. LIMIT and array subqueries need a total order. This module assumes that rows that
compare as equal are identical, and that sums have no floating-point numbers; distinguishable_values.py checks both.
case_views.py has the names whose behaviour the text does not show.

Oracles need this without a server, for queries that they derive and for smaller cases of reduction. So it is a function
of the text: a step of the case could not store the result for them. For foreign statements, fuzz/sources/determinism
analyses the server's own parse tree, in which overloading is resolved. Both have one criterion for functions: that
package generates functions.txt from the catalogs.
"""

import re
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from pglast import ast
from pglast.enums import SubLinkType, TransactionStmtKind
from pglast.visitors import Skip

from oracles.sql.building import fresh_select, trees
from oracles.sql.reading import Reader
from oracles.sql.total_order import is_cut, is_total

CACHED: Final = 4096  # statements


def _table() -> dict[str, frozenset[str]]:
    lines = Path(__file__).with_name("functions.txt").read_text().splitlines()
    return {name: frozenset(properties) for name, *properties in map(str.split, lines)}


# Names of PostgreSQL 17's functions that are all determined by their arguments, the data, and settings that no oracle
# changes; and their properties. fuzz/sources/determinism/names.sql reads them from the catalogs, and defines them.
_TABLE: Final = _table()
DETERMINED: Final = frozenset(_TABLE)


def _with(property_: str) -> frozenset[str]:
    return frozenset(name for name, properties in _TABLE.items() if property_ in properties)


AGGREGATES: Final = _with("aggregate")  # their result does not depend on the order of rows
ADDING: Final = _with("adds")
PICKING: Final = _with("picks")
SET_RETURNING: Final = _with("set")
# They return floating-point numbers and intervals, too, but whole ones, of which sums are exact.
_WHOLE: Final = frozenset({"date_trunc", "length", "round", "sign", "trunc"})
INEXACT_FUNCTIONS: Final = _with("inexact") - _WHOLE  # may create equal but distinguishable values from others
_CLOCK: Final = re.compile(r"\b(now|today|tomorrow|yesterday)\b", re.IGNORECASE)  # as a date or time
_SYSTEM_SCHEMAS: Final = frozenset({"information_schema", "pg_catalog"})
SYSTEM_COLUMNS: Final = frozenset({"cmax", "cmin", "ctid", "tableoid", "xmax", "xmin"})


@lru_cache(CACHED)
def is_known(sql: str) -> bool:
    """Return whether the text is a single statement that is known to be deterministic."""
    statements = trees(sql)
    return len(statements) == 1 and is_deterministic(statements[0].stmt)


def deterministic_select(sql: str) -> Any:
    """Return a new tree of a single SELECT that is known to be deterministic, else None."""
    return fresh_select(sql) if is_known(sql) else None


def is_deterministic(statement: Any) -> bool:
    """Return whether all parts of a syntax tree are known to be deterministic."""
    return _lacks(statement, _Doubts())


def only_reads(statement: Any) -> bool:
    """Return whether a statement is a query without changes in WITH or INTO, which may run any number of times."""
    return isinstance(statement, ast.SelectStmt) and _lacks(statement, _Changes())


@lru_cache(CACHED)
def is_read_only(sql: str) -> bool:
    """Return whether a text is a single query that changes no data, as far as it shows."""
    statements = trees(sql)
    return len(statements) == 1 and only_reads(statements[0].stmt)


def leaves_dead_rows(statement: Any) -> bool:
    """Return whether a statement may change or delete rows of tables, or roll back, as far as it shows.

    Functions and rules may do so when they are used.
    """
    return not _lacks(statement, _DeadRows())


def changes_plainly(statement: Any) -> bool:
    """Return whether a statement inserts, updates or deletes rows of at most one table, as far as it shows.

    No join, subquery, grouping or sort is needed for it.
    """
    return isinstance(statement, (ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt)) and _lacks(statement, _Composed())


def calls(expression: Any, names: Collection[str]) -> bool:
    """Return whether the expression itself, not a subquery in it, calls one of these functions."""
    return not _lacks(expression, _Calls(names))


def has_parameters(statement: Any) -> bool:
    """Return whether there are parameters such as $1."""
    return not _lacks(statement, _Parameters())


class _Found(Exception):  # a signal, no error
    """Signal that a search has succeeded."""


def _lacks(node: Any, visitor: Reader) -> bool:
    """Return whether no node makes the visitor raise _Found."""
    try:
        visitor(node)
    except _Found:
        return False
    return True


def name_of(call: Any) -> str:
    """Return the name of the called function without its schema."""
    return str(call.funcname[-1].sval)


class _Calls(Reader):
    def __init__(self, names: Collection[str]) -> None:
        super().__init__()
        self._names = names

    def visit_FuncCall(self, _ancestors: Any, node: Any) -> None:
        if name_of(node) in self._names:
            raise _Found

    def visit_SubLink(self, _ancestors: Any, _node: Any) -> Any:
        return Skip


class _Parameters(Reader):
    def visit_ParamRef(self, _ancestors: Any, _node: Any) -> None:
        raise _Found


class _Changes(Reader):
    def visit(self, _ancestors: Any, node: Any) -> None:
        if isinstance(node, _CHANGING):
            raise _Found


class _DeadRows(Reader):
    def visit(self, _ancestors: Any, node: Any) -> None:
        if isinstance(node, _LEAVING_DEAD_ROWS):
            raise _Found

    def visit_TransactionStmt(self, _ancestors: Any, node: Any) -> None:
        if node.kind in _ROLLING_BACK:
            raise _Found


class _Composed(Reader):
    def visit(self, _ancestors: Any, node: Any) -> None:
        if isinstance(node, _COMPOSED):
            raise _Found

    def visit_SelectStmt(self, _ancestors: Any, node: Any) -> None:
        if len(node.fromClause or ()) > 1 or node.groupClause or node.distinctClause or node.sortClause or node.larg:
            raise _Found

    def visit_UpdateStmt(self, _ancestors: Any, node: Any) -> None:
        if node.fromClause:
            raise _Found

    def visit_DeleteStmt(self, _ancestors: Any, node: Any) -> None:
        if node.usingClause:
            raise _Found


class _Doubts(Reader):
    def visit(self, _ancestors: Any, node: Any) -> None:
        if isinstance(node, _DOUBTFUL):
            raise _Found

    def visit_FuncCall(self, _ancestors: Any, node: Any) -> None:
        if name_of(node) not in DETERMINED or node.over is not None:
            raise _Found

    def visit_SelectStmt(self, _ancestors: Any, node: Any) -> None:
        first_of_each = any(node.distinctClause or ())  # DISTINCT ON; plain DISTINCT has (None,) here
        if first_of_each or (is_cut(node) and not is_total(node)):
            raise _Found

    def visit_SubLink(self, _ancestors: Any, node: Any) -> None:
        """Find array subqueries without a total order."""
        is_array, rows = node.subLinkType == SubLinkType.ARRAY_SUBLINK, node.subselect
        if is_array and (rows.fromClause or rows.valuesLists or rows.larg) and not is_total(rows):
            raise _Found

    def visit_ColumnRef(self, _ancestors: Any, node: Any) -> None:
        if getattr(node.fields[-1], "sval", "") in SYSTEM_COLUMNS:
            raise _Found

    def visit_RangeTableSample(self, _ancestors: Any, node: Any) -> None:
        """Find samples, except those of all rows."""
        (share, *others) = node.args
        if others or not isinstance(share, ast.A_Const) or getattr(share.val, "ival", None) != 100:
            raise _Found

    def visit_String(self, ancestors: Any, node: Any) -> None:
        """Find literals, such as 'now', that may become the time of execution."""
        if isinstance(ancestors.node, ast.A_Const) and _CLOCK.search(node.sval):
            raise _Found

    def visit_RangeVar(self, _ancestors: Any, node: Any) -> None:
        """Find catalogs and views of the server's state, such as pg_settings, which are no data of the case."""
        if node.relname.startswith("pg_") or node.schemaname in _SYSTEM_SCHEMAS:
            raise _Found


_CHANGING: Final = (ast.DeleteStmt, ast.InsertStmt, ast.IntoClause, ast.MergeStmt, ast.UpdateStmt)
_LEAVING_DEAD_ROWS: Final = (
    *(ast.DeleteStmt, ast.MergeStmt, ast.UpdateStmt, ast.OnConflictClause, ast.RefreshMatViewStmt),
    *(ast.CallStmt, ast.CreateFunctionStmt, ast.DoStmt, ast.RuleStmt),
)
_COMPOSED: Final = (ast.CommonTableExpr, ast.JoinExpr, ast.RangeSubselect, ast.SubLink, ast.WindowDef)
_ROLLING_BACK: Final = (TransactionStmtKind.TRANS_STMT_ROLLBACK, TransactionStmtKind.TRANS_STMT_ROLLBACK_TO)
_DOUBTFUL: Final = (
    *(*_CHANGING, ast.LockingClause),
    *(ast.JsonArrayAgg, ast.JsonArrayQueryConstructor, ast.JsonObjectAgg, ast.SQLValueFunction),
)
