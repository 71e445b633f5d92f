"""Restrictions: pairs of queries, made from a query's core, of which the second returns fewer of the rows.

PostgreSQL's estimates are products and sums of fractions, so a restriction cannot raise them, with three exceptions:

- Two bounds of one column form a range, whose estimate is no product.
- Equal columns form an equivalence class, from which the planner derives other conditions. Of several equalities of a
  column it keeps one, but not within OR.
- If an outer join becomes an inner join, its conditions are applied earlier, where the minimum of one row applies.

So each query reads one table or an inner join of two. An added condition is neither a bound nor an equality. A bound is
tightened in a query that has no other condition.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pglast import ast
from pglast.enums import A_Expr_Kind, BoolExprType, JoinType
from pglast.visitors import Skip

from oracles.sql.building import all_of, columns_in, conjuncts, has_null_test, has_subquery, sql_of, text_of
from oracles.sql.core import deterministic_core
from oracles.sql.reading import Reader
from oracles.sql.total_order import is_star

CACHED: Final = 4096  # statements
MOST: Final = 12  # pairs of a query; all are planned in one statement
DISTINCT: Final = "DISTINCT"  # the name of the pairs whose types need an equality operator
_BOUNDS: Final = {"<": 1, "<=": 1, ">": -1, ">=": -1}
# Limits of int4, the type of each bound that is read. With another type, the operator may have no place in the operator
# class of a partition key, so partitions with no such rows are not pruned.
_LEAST, _MOST = "'-2147483648'::int4", "2147483647"
_SYSTEM: Final = frozenset({"cmax", "cmin", "ctid", "tableoid", "xmax", "xmin"})


@dataclass(frozen=True, slots=True)
class Restriction:
    """Two queries; `narrow` returns a part of the rows of `wide`."""

    name: str
    wide: str
    narrow: str


@lru_cache(CACHED)
def restrictions(sql: str) -> tuple[Restriction, ...]:
    """Return the pairs made from a query: from itself if it is simple, else from each joined table."""
    select = deterministic_core(sql)
    if select is None or select.withClause is not None:
        return ()
    targets: Any = select.targetList or ()
    shown = [target.val for target in targets if isinstance(target.val, ast.ColumnRef) and not is_star(target.val)]
    tables, joined_by = _from(select.fromClause)
    if tables:
        found = _of_query(select, tables, joined_by, shown)
    else:
        found = [pair for table in _Tables(select).tables.values() for pair in _of_table(*table)]
    return tuple(dict.fromkeys(found))[:MOST]


def _of_query(select: Any, tables: int, joined_by: Any, shown: list[Any]) -> Iterable[Restriction]:
    condition = select.whereClause
    parts = [part for part in (condition, joined_by) if part is not None]
    text = "" if condition is None else text_of(condition)
    if any(map(has_subquery, parts)) or (condition is not None and not text):
        return ()
    columns = [each for part in parts for each in columns_in(part)] + shown
    rows = _Rows(sql_of(select.fromClause[0]), text)
    return _pairs(rows, _names(columns)[:1], condition if tables == 1 else None, list(map(_name, shown)))


def _of_table(table: Any, conditions: list[Any], columns: list[Any]) -> Iterable[Restriction]:
    condition = all_of(*conditions)
    text = "" if condition is None else text_of(condition)
    if condition is not None and not text:
        return ()
    names = _names(columns)
    return _pairs(_Rows(sql_of(table), text), names[:1], condition, names)


def _names(columns: Iterable[Any]) -> list[str]:
    return [name for name in dict.fromkeys(map(_name, columns)) if name]


class _Tables(Reader):
    """The tables of a join by the qualifier of their columns, with the conditions on each alone and its columns."""

    def __init__(self, select: Any) -> None:
        super().__init__()
        self.tables: dict[str, tuple[Any, list[Any], list[Any]]] = {}
        for item in select.fromClause:
            self(item)
        self._take(select.whereClause)

    def visit_RangeVar(self, _ancestors: Any, node: Any) -> None:
        self.tables[node.alias.aliasname if node.alias else node.relname] = (node, [], [])

    def visit_RangeSubselect(self, _ancestors: Any, _node: Any) -> Any:
        return Skip

    def visit_SubLink(self, _ancestors: Any, _node: Any) -> Any:
        return Skip

    def visit_JoinExpr(self, _ancestors: Any, node: Any) -> Any:
        for side in (node.larg, node.rarg):  # tables first, then the conditions on them
            self(side)
        self._take(node.quals)
        return Skip

    def _take(self, condition: Any) -> None:
        for part in conjuncts(condition):
            columns = columns_in(part)
            named = {getattr(column.fields[0], "sval", "") for column in columns if len(column.fields) == 2}
            for name in named & self.tables.keys():
                _, conditions, known = self.tables[name]
                known += [column for column in columns if getattr(column.fields[0], "sval", "") == name]
                alone = len(named) == 1 and all(len(column.fields) == 2 for column in columns)
                if alone and not has_subquery(part) and part not in conditions:
                    conditions.append(part)


@dataclass(frozen=True, slots=True)
class _Rows:
    source: str  # the text after FROM
    condition: str  # the text after WHERE; "": none

    def where(self, condition: str, shown: str = "1") -> str:
        """Return the query for the rows that meet a condition ("": all rows)."""
        return f"SELECT {shown} FROM {self.source}" + (f" WHERE {condition}" if condition else "")


def _pairs(rows: _Rows, columns: list[str], condition: Any, shown: list[str]) -> Iterator[Restriction]:
    whole = rows.where(rows.condition)
    for column in columns:
        more = f"({rows.condition}) AND {column} IS NOT NULL" if rows.condition else f"{column} IS NOT NULL"
        yield Restriction("one more condition", whole, rows.where(more))
        if condition is not None and not _equates(condition) and not has_null_test(condition):
            either = rows.where(f"({rows.condition}) OR {column} IS NULL")
            yield Restriction("without an alternative", either, whole)
    for bound in filter(_is_bound, conjuncts(condition)):
        yield from _tightened(rows, bound)
    if shown and all(shown):
        names = ", ".join(shown)
        distinct = rows.where(rows.condition, f"DISTINCT {names}")
        yield Restriction(DISTINCT, rows.where(rows.condition, names), distinct)


def _tightened(rows: _Rows, bound: Any) -> Iterator[Restriction]:
    """Yield the pairs of a bound with the loosest and with the tightest possible one."""
    column, operator = _name(bound.lexpr), bound.name[-1].sval
    given = rows.where(text_of(bound))
    low, high = (rows.where(f"{column} {operator} {end}") for end in (_LEAST, _MOST))
    widest, narrowest = (high, low) if _BOUNDS[operator] > 0 else (low, high)
    yield Restriction("a tighter bound", widest, given)
    yield Restriction("a tighter bound", given, narrowest)


def _from(clause: Any) -> tuple[int, Any]:
    """Return the number of tables, one or two, and their join condition; 0 for any other FROM clause."""
    only: Any = clause[0] if len(clause) == 1 else None
    if isinstance(only, ast.RangeVar):
        return 1, None
    inner = isinstance(only, ast.JoinExpr) and only.jointype == JoinType.JOIN_INNER and not only.isNatural
    if not inner or only.alias or not isinstance(only.quals, ast.Node):
        return 0, None
    sides = (only.larg, only.rarg)
    return (2, only.quals) if all(isinstance(side, ast.RangeVar) for side in sides) else (0, None)


def _name(column: Any) -> str:
    """Return a column as SQL; "" for a star or a system column."""
    names = [getattr(field, "sval", "") for field in column.fields]
    return "" if not names[-1] or names[-1] in _SYSTEM else sql_of(column)


def _is_bound(condition: Any) -> bool:
    name: Any = condition.name if isinstance(condition, ast.A_Expr) and condition.kind == A_Expr_Kind.AEXPR_OP else ()
    if len(name) != 1 or name[0].sval not in _BOUNDS or not text_of(condition):
        return False
    constant = isinstance(condition.rexpr, ast.A_Const) and isinstance(condition.rexpr.val, ast.Integer)
    return constant and isinstance(condition.lexpr, ast.ColumnRef) and bool(_name(condition.lexpr))


def _equates(condition: Any) -> bool:
    """Return whether any operator compares columns with each other, or several of a conjunction equate one column.

    Their places in the condition do not matter, because the planner may simplify the expression around them.
    """
    equating = _Equating(condition)
    return equating.columns_with_each_other or (equating.connects and equating.one_column_again)


class _Equating(Reader):
    def __init__(self, condition: Any) -> None:
        super().__init__()
        self.columns_with_each_other = False
        self.one_column_again = False
        self.connects = False  # has AND, or NOT, which makes AND of OR
        self._equated: set[str] = set()
        self(condition)

    def visit_BoolExpr(self, _ancestors: Any, node: Any) -> None:
        self.connects |= node.boolop != BoolExprType.OR_EXPR

    def visit_A_Expr(self, _ancestors: Any, node: Any) -> None:
        left, right = ([] if side is None else columns_in(side) for side in (node.lexpr, node.rexpr))
        self.columns_with_each_other |= bool(left and right)
        if node.name[-1].sval in ("=", "<>"):
            names = set(_names([*left, *right]))
            self.one_column_again |= not names.isdisjoint(self._equated)
            self._equated |= names
