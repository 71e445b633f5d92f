"""Mutation: changes to a statement's syntax tree that keep it a statement: constants, comparisons, kinds of join."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

import psycopg
from pglast import ast
from pglast.enums import A_Expr_Kind, JoinType
from pglast.visitors import Visitor

from fuzz.generators.choices import chance, pick

_JOINS: Final = (JoinType.JOIN_INNER, JoinType.JOIN_LEFT, JoinType.JOIN_RIGHT, JoinType.JOIN_FULL)
_COMPARISONS: Final = ("=", "<", "<=", ">", ">=", "<>")
_CHANGED: Final = 40  # percent of the places where something might change
_KEPT: Final = 20  # values of each column
_COLUMNS: Final = """
    SELECT format('%I.%I', n.nspname, c.relname), quote_ident(a.attname), t.typcategory::text
    FROM pg_attribute AS a
    JOIN pg_class AS c ON c.oid = a.attrelid
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_type AS t ON t.oid = a.atttypid
    WHERE c.relkind IN ('r', 'p', 'm') AND a.attnum > 0 AND NOT a.attisdropped AND NOT c.relispartition
      AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname NOT IN ('information_schema', 'pgduel_tools')
      AND t.typcategory IN ('N', 'S', 'D')
    ORDER BY n.nspname, c.relname, a.attnum
"""
_VALUES: Final = "SELECT DISTINCT {0}::text FROM {1} WHERE length({0}::text) < 100 ORDER BY 1 LIMIT {2}"

Values = Mapping[str, Sequence[str]]


def values_of(connection: psycopg.Connection[Any]) -> Values:
    """Return what columns hold, as text by category of type: N numbers, S strings, D dates. Raises psycopg.Error."""
    found: dict[str, dict[str, None]] = {"N": dict.fromkeys(("0", "1", "-1", "2147483647")), "S": {"": None}, "D": {}}
    for table, column, category in connection.execute(_COLUMNS).fetchall():
        asked = _VALUES.format(column, table, _KEPT)
        rows = connection.execute(asked.encode()).fetchall()
        found[category] |= dict.fromkeys(value for (value,) in rows if value is not None)
    return {category: tuple(values) for category, values in found.items()}


def mutate(statement: Any, rng: random.Random, values: Values) -> None:
    """Change a syntax tree in its place."""
    _Mutation(rng, values)(statement)


class _Mutation(Visitor):
    def __init__(self, rng: random.Random, values: Values) -> None:
        super().__init__()
        self._rng = rng
        self._values = values

    def _changes(self) -> bool:
        return chance(self._rng, _CHANGED)

    def visit_A_Const(self, ancestors: Any, node: Any) -> None:
        position = isinstance(ancestors.node, ast.SortBy) or ancestors.parent.member == "groupClause"
        if position or not self._changes():
            return
        kind = type(node.val)
        if kind in (ast.Integer, ast.Float):
            node.val = _number(pick(self._rng, self._values["N"]))
        elif kind is ast.String:
            category = "D" if node.val.sval in self._values["D"] else "S"
            node.val = ast.String(pick(self._rng, self._values[category]))

    def visit_JoinExpr(self, _ancestors: Any, node: Any) -> None:
        if node.jointype in _JOINS and (node.quals is not None or node.usingClause) and self._changes():
            node.jointype = pick(self._rng, _JOINS)

    def visit_A_Expr(self, _ancestors: Any, node: Any) -> None:
        if node.kind is A_Expr_Kind.AEXPR_OP and node.name[-1].sval in _COMPARISONS and self._changes():
            node.name = (ast.String(pick(self._rng, _COMPARISONS)),)


def _number(text: str) -> Any:
    try:
        value = int(text)
    except ValueError:
        return ast.Float(text)
    return ast.Integer(value) if abs(value) < 1 << 31 else ast.Float(text)
