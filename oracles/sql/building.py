"""Syntax trees of queries: parsed, combined from parts, and printed only if parsing returns the same tree.

Parsed trees are shared by readers; functions that change a tree get a new one. No node may occur twice in a tree,
because pglast's printer and visitors depend on its position.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from pglast import ast, parse_sql
from pglast.enums import BoolExprType
from pglast.parser import ParseError, fingerprint
from pglast.stream import RawStream
from pglast.visitors import Skip

from oracles.sql.parsing import parse_statements
from oracles.sql.reading import Reader

# pglast checks each attribute that is set, also when it parses, which takes half of the CPU time of the oracles. The
# parser sets valid attributes only. Trees with others have no SQL that parses to the same tree.
ast.Node.__setattr__ = object.__setattr__  # type: ignore[assignment, method-assign]

KEPT: Final = 256  # the statements of a case, for all oracles; a tree may need megabytes
CACHED: Final = 4096  # statements
DIGEST: Final = "SELECT count(*), sum(hashtextextended(CAST(q.* AS text), 0)) FROM ({sql}) AS q"
PLACE: Final = "SELECT place_of_a_query"


@lru_cache(KEPT)
def trees(sql: str) -> tuple[Any, ...]:
    """Return the trees of the statements in a text; an empty tuple if it cannot be parsed.

    The trees are shared. A caller that changes one must parse a new one (`fresh_select`).
    """
    try:
        return parse_statements(sql)
    except ParseError:
        return ()


@lru_cache(CACHED)
def is_parsed(sql: str) -> bool:
    """Return whether a text can be parsed. Others have newer syntax than pglast's, too many levels, or no sense."""
    return bool(trees(sql))


@lru_cache(KEPT)
def fingerprint_of(sql: str) -> str | None:
    """Return libpg_query's fingerprint, which literals do not change, or None if the text is not one statement."""
    return fingerprint(sql) if len(trees(sql)) == 1 else None


def statement_of(sql: str) -> Any:
    """Return a new tree of a text with a single statement; None for any other text."""
    try:
        statements = parse_statements(sql)
    except (ParseError, ValueError):  # ValueError: characters that cannot be encoded
        return None
    return statements[0].stmt if len(statements) == 1 else None


def fresh_select(sql: str) -> Any:
    """Return a new tree of the text if it is a single SELECT, else None."""
    known = trees(sql)
    is_select = len(known) == 1 and isinstance(known[0].stmt, ast.SelectStmt)
    return parse_sql(sql)[0].stmt if is_select else None


def snippet(sql: str) -> Any:
    """Return the tree of a statement. Raises ParseError."""
    return parse_sql(sql)[0].stmt


def expression(sql: str) -> Any:
    """Return the tree of an expression. Raises ParseError."""
    return snippet(f"SELECT {sql}").targetList[0].val


def sql_of(tree: Any) -> str:
    """Return a node as SQL, which is that of another tree if pglast's printer does not support this one."""
    _Placed()((tree,))  # as RawStream.__call__ does, but faster
    stream = RawStream()
    stream.print_node(tree)
    return str(stream.getvalue())


class _Placed(Reader):
    """Notes the place of each node, which pglast's printer depends on."""

    def visit(self, ancestors: Any, node: Any) -> None:
        node.ancestors = ancestors


def identifier(name: str) -> str:
    """Return a name as a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def text_of(value: Any) -> str:
    """Return an expression as SQL, or "" if the SQL does not parse to the same tree."""
    text = sql_of(value)
    return text if _parses_to(f"SELECT {text}", lambda tree: tree.targetList[0].val == value) else ""


def printed(statement: Any) -> str:
    """Return the statement as SQL; "" if parsing that would not return the same tree."""
    sql = sql_of(statement)
    return sql if _parses_to(sql, lambda tree: tree == statement) else ""


def _parses_to(sql: str, accepted: Callable[[Any], bool]) -> bool:
    """Return whether a text has an accepted tree. pglast prints some trees as no SQL: USING OPERATOR(schema.name)."""
    try:
        return accepted(snippet(sql))
    except ParseError:
        return False


def place() -> Any:
    """Return a query for which `put` puts the text of another one, because printing that again takes time."""
    return snippet(PLACE)


def put(sql: str, text: str) -> str:
    """Return the printed SQL with a query's text at the only place in it; "" if there is not one."""
    return sql.replace(PLACE, text) if sql.count(PLACE) == 1 else ""


def after_with(clause: Any, text: str) -> str:
    """Return a query's text after WITH, a clause or None; "" if the clause cannot be printed."""
    if clause is None:
        return text
    whole = place()
    whole.withClause = clause
    return put(printed(whole), text)


def conjuncts(where: Any) -> list[Any]:
    """Return the operands of a conjunction: one for any other condition, none for None."""
    if isinstance(where, ast.BoolExpr) and where.boolop == BoolExprType.AND_EXPR:
        return list(where.args or ())
    return [] if where is None else [where]


def all_of(*conditions: Any) -> Any:
    """Return the conjunction of these conditions, some of which may be None; None if all are."""
    there = tuple(each for condition in conditions for each in conjuncts(condition))
    if len(there) < 2:
        return there[0] if there else None
    return ast.BoolExpr(boolop=BoolExprType.AND_EXPR, args=there)


def negated(condition: Any) -> Any:
    """Return the negation of the condition."""
    return ast.BoolExpr(boolop=BoolExprType.NOT_EXPR, args=(condition,))


def union_all(first: Any, *others: Any) -> Any:
    """Return the UNION ALL of the queries; the WITH of the first applies to all of them."""
    union = first
    for other in others:
        left, union = union, snippet("SELECT 1 UNION ALL SELECT 2")
        union.withClause = left.withClause
        for branch in (left, other):
            branch.withClause = None
            branch.sortClause = None
        union.larg, union.rarg = left, other
    return union


def digest(select: Any) -> Any:
    """Return the query for the number of the rows of `select` and a hash of them all. Its WITH moves to the top."""
    return _around(DIGEST.format(sql="SELECT"), select)


def counted(select: Any) -> Any:
    """Return the query for the number of the rows of `select`. Its WITH moves to the top."""
    return _around("SELECT count(*) FROM (SELECT) AS q", select)


def _around(sql: str, select: Any) -> Any:
    around = snippet(sql)
    around.withClause, select.withClause = select.withClause, None
    around.fromClause[0].subquery = select
    return around


def has_subquery(value: Any) -> bool:
    """Return whether there is a subquery in an expression."""
    return bool(_Found(value).subqueries)


def columns_in(value: Any) -> list[Any]:
    """Return the column references in an expression outside of subqueries."""
    return _Found(value).columns


def has_null_test(value: Any) -> bool:
    """Return whether IS NULL or IS NOT NULL is in an expression, outside of subqueries."""
    return bool(_Found(value).null_tests)


class _Found(Reader):
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.subqueries: list[Any] = []
        self.columns: list[Any] = []
        self.null_tests: list[Any] = []
        self(value)

    def visit_SubLink(self, _ancestors: Any, node: Any) -> Any:
        self.subqueries.append(node)
        return Skip

    def visit_ColumnRef(self, _ancestors: Any, node: Any) -> None:
        self.columns.append(node)

    def visit_NullTest(self, _ancestors: Any, node: Any) -> None:
        self.null_tests.append(node)
