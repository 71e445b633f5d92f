"""Errors that nothing in a query can raise, and infallible queries.

Two equivalent queries may legally end differently if an expression in them may raise an error. The plan determines the
rows for which it is evaluated. An infallible query has no such expression: its text rules out run-time errors for all
data, plans and orders of evaluation. So each node of an infallible query is listed here: comparisons, boolean logic,
joins, functions that accept all arguments, aggregates that do not overflow. Arithmetic, most casts, and scalar
subqueries that may have several rows are not.

Types decide which function an operator calls. So all relations are tables of the case, with columns of listed types, or
views of these. Cases that may redefine operators, casts or the way a table is read have no infallible query.

An error of an infallible query is legal only if a limit of a resource, a setting or the session may cause it. The
SQLSTATE's class excludes these. The classes of syntax errors and of features that are not supported are legal, too: a
rewritten query may have a form that PostgreSQL does not support.
"""

import re
from collections.abc import Iterable, Sequence, Set
from functools import lru_cache
from typing import Any, Final

from pglast import ast
from pglast.enums import A_Expr_Kind, SetOperation, SubLinkType
from pglast.visitors import Skip

from oracles.model.case import Kind, Step
from oracles.model.observation import Message, Observation, Outcome
from oracles.sql.building import trees
from oracles.sql.determinism import AGGREGATES, calls, name_of
from oracles.sql.names import names_in
from oracles.sql.reading import Reader
from oracles.sql.total_order import integer

CACHED: Final = 64  # cases

# Words of statements, also dynamic ones, that change what operators and casts do, how a table is read, or what the
# client can receive. Reading a generated column or a foreign table may fail.
_REDEFINING: Final = re.compile(
    r"CREATE\s+CAST|FOREIGN\s+(TABLE|SCHEMA)|\bSET\s+NAMES"
    r"|\b(AGGREGATE|CLIENT_ENCODING|COLLATION|DOMAIN|EXTENSION|GENERATED|OPERATOR|POLICY|RULE)\b",
    re.IGNORECASE,
)
_DYNAMIC: Final = (ast.CreateFunctionStmt, ast.DoStmt)
_ALTERING: Final = re.compile(r"\bALTER\b", re.IGNORECASE)

# Types whose comparisons, text forms, and implicit casts from one to another never fail. A numeric has a number of
# digits, because sums of others may overflow. A case has one type of times, because casts may be out of range.
_NUMERIC: Final = "numeric"
_TIMES: Final = frozenset({"date", "timestamp", "timestamptz"})
_TYPES: Final = _TIMES | {
    *("bigserial", "bool", "bpchar", "bytea", "int2", "int4", "int8", _NUMERIC, "serial", "smallserial", "text"),
    *("uuid", "varchar"),
}
_DECIMAL: Final = re.compile(r"\d{1,100}(\.\d{0,100})?")  # in the range of all types of numbers

_NODES: Final = (
    *(ast.A_Const, ast.A_Star, ast.Alias, ast.BoolExpr, ast.Boolean, ast.BooleanTest, ast.CaseExpr, ast.CaseWhen),
    *(ast.CoalesceExpr, ast.CollateClause, ast.ColumnRef, ast.CommonTableExpr, ast.Integer, ast.JoinExpr),
    *(ast.MinMaxExpr, ast.NullTest, ast.ParamRef, ast.RangeFunction, ast.RangeSubselect, ast.ResTarget, ast.RowExpr),
    *(ast.SortBy, ast.String, ast.TypeName),
)
_COMPARISONS: Final = frozenset({"=", "<>", "!=", "<", "<=", ">", ">="})
_COMPARING: Final = frozenset(
    {
        *(A_Expr_Kind.AEXPR_OP, A_Expr_Kind.AEXPR_OP_ANY, A_Expr_Kind.AEXPR_OP_ALL, A_Expr_Kind.AEXPR_NULLIF),
        *(A_Expr_Kind.AEXPR_DISTINCT, A_Expr_Kind.AEXPR_NOT_DISTINCT, A_Expr_Kind.AEXPR_IN),
    }
)
_BETWEEN: Final = frozenset(
    {
        *(A_Expr_Kind.AEXPR_BETWEEN, A_Expr_Kind.AEXPR_NOT_BETWEEN),
        *(A_Expr_Kind.AEXPR_BETWEEN_SYM, A_Expr_Kind.AEXPR_NOT_BETWEEN_SYM),
    }
)
_MATCHING: Final = frozenset({A_Expr_Kind.AEXPR_LIKE, A_Expr_Kind.AEXPR_ILIKE})
_DIVIDING: Final = frozenset({"/", "%"})
_JOINING: Final = "||"  # of texts, as no type that is listed has other values to join
_INTEGRAL: Final = frozenset({"count", "hashtextextended", "length"})  # functions that return integers
_FUNCTIONS: Final = _INTEGRAL | {
    *("avg", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "every", "left", "lower", "max", "md5", "min"),
    *("quote_literal", "repeat", "right", "sum", "upper"),
}
_SERIES: Final = "generate_series"


def is_infallible(sql: str, steps: Sequence[Step]) -> bool:
    """Return whether a query on the case's tables that passes parse analysis cannot fail at run time."""
    known = trees(sql)
    if len(known) != 1 or not isinstance(known[0].stmt, ast.SelectStmt):
        return False
    scene = _scene_of(tuple(steps))
    return scene is not None and _fits(known[0].stmt, scene)


@lru_cache(CACHED)
def _scene_of(steps: tuple[Step, ...]) -> "_Scene | None":
    """Return the relations that the steps create; None if a step may redefine what a query does."""
    scene = _Scene()
    for step in steps:
        if step.kind is Kind.QUERY:
            continue
        if not trees(step.sql) or _REDEFINING.search(step.sql):
            return None
        for each in trees(step.sql):
            if isinstance(each.stmt, _DYNAMIC) and _ALTERING.search(step.sql):
                return None
            scene(each.stmt)
    return scene


class _Scene(Reader):
    """The relations that statements create, and the types of their columns."""

    def __init__(self) -> None:
        super().__init__()
        self.types: set[str] = set()
        self.composites: set[str] = set()
        self.others: set[str] = set()  # functions, and relations that cannot be judged
        self._relations: set[str] = set()

    @property
    def relations(self) -> set[str]:
        """Return the relations that can be read without errors."""
        return self._relations - self.others

    def _add(self, name: str, *, readable: bool) -> None:
        (self._relations if readable else self.others).add(name)

    def visit_CreateStmt(self, _ancestors: Any, node: Any) -> None:
        parents = {parent.relname for parent in node.inhRelations or ()}
        copies = any(isinstance(each, ast.TableLikeClause) for each in node.tableElts or ())
        self._add(node.relation.relname, readable=not (copies or node.ofTypename) and parents <= self.relations)
        self.types |= _types_in(node)

    def visit_AlterTableStmt(self, _ancestors: Any, node: Any) -> None:
        self.types |= _types_in(node)

    def visit_CompositeTypeStmt(self, _ancestors: Any, node: Any) -> None:
        self.composites.add(node.typevar.relname)
        self.types |= _types_in(node)

    def visit_ViewStmt(self, _ancestors: Any, node: Any) -> None:
        self._add(node.view.relname, readable=_fits(node.query, self))

    def visit_CreateTableAsStmt(self, _ancestors: Any, node: Any) -> None:
        self._add(node.into.rel.relname, readable=False)

    def visit_CreateFunctionStmt(self, _ancestors: Any, node: Any) -> None:
        self._add(name_of(node), readable=False)


def _fits(query: Any, scene: _Scene) -> bool:
    """Return whether a query on these relations is infallible."""
    types = scene.types | _types_in(query)
    if not types <= _TYPES | scene.composites or len(types & _TIMES) > 1:
        return False
    counts = _Counts()
    counts(query)
    fallible = _Fallible(scene, names_in(query, deep=True).common, counts.columns)
    fallible(query)
    return not fallible.found


def _types_in(tree: Any) -> set[str]:
    named = _Types()
    named(tree)
    return named.names


class _Types(Reader):
    """The names of types in a tree; that of an array, and of a numeric without a number of digits, is changed."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def visit_TypeName(self, ancestors: Any, node: Any) -> None:
        name = node.names[-1].sval if node.names else ""
        bounded = name != _NUMERIC or node.typmods or _is_constant(ancestors.node)
        self.names.add(name if bounded and not node.arrayBounds else f"{name}[]")


class _Counts(Reader):
    """The columns of VALUES, as (alias, column), whose values are numbers of rows: integers from 0, or NULL."""

    def __init__(self) -> None:
        super().__init__()
        self.columns: set[tuple[str, str]] = set()

    def visit_RangeSubselect(self, _ancestors: Any, node: Any) -> None:
        names = (node.alias.colnames if node.alias else None) or ()
        for name, values in zip(names, zip(*(node.subquery.valuesLists or ()), strict=True), strict=False):
            if all(map(_is_count, values)):
                self.columns.add((node.alias.aliasname, name.sval))


class _Fallible(Reader):
    """A visitor that finds nodes that are not known to be infallible."""

    def __init__(self, scene: _Scene, common: Iterable[str], counts: Set[tuple[str, str]]) -> None:
        super().__init__()
        self.found = False
        self._scene = scene
        self._counts = counts
        self._readable = scene.relations.union(common)

    def _require(self, *conditions: object) -> None:
        self.found = self.found or not all(conditions)

    def visit(self, _ancestors: Any, node: Any) -> None:
        self._require(isinstance(node, _NODES))

    def visit_RangeVar(self, _ancestors: Any, node: Any) -> None:
        self._require(node.relname in self._readable)

    def visit_WithClause(self, _ancestors: Any, node: Any) -> None:
        self._require(not node.recursive)

    def visit_SelectStmt(self, _ancestors: Any, node: Any) -> None:
        limits = [each for each in (node.limitCount, node.limitOffset) if each is not None]
        self._require(*(_is_count(each) or _column_of(each) in self._counts for each in limits))
        self._require(not (node.intoClause or node.lockingClause or node.windowClause))

    def visit_Float(self, _ancestors: Any, node: Any) -> None:
        self._require(_DECIMAL.fullmatch(node.fval))

    def visit_TypeCast(self, _ancestors: Any, node: Any) -> None:
        """Require a constant, which parse analysis converts, or a cast to text."""
        to: Any = node.typeName
        self._require(_is_constant(node) or (to.names[-1].sval == "text" and not to.typmods))

    def visit_A_ArrayExpr(self, _ancestors: Any, node: Any) -> None:
        self._require(*map(_is_constant, node.elements or ()))  # arrays of arrays may have different lengths

    def visit_A_Expr(self, _ancestors: Any, node: Any) -> None:
        operator = node.name[-1].sval
        divides = operator in _DIVIDING and (integer(node.rexpr) or 0) > 0
        known = operator == _JOINING or (node.kind in _COMPARING and operator in _COMPARISONS)
        binary = node.lexpr is not None and (known or divides)
        self._require(binary or node.kind in _BETWEEN or (node.kind in _MATCHING and _is_pattern(node.rexpr)))

    def visit_FuncCall(self, _ancestors: Any, node: Any) -> None:
        name, arguments = name_of(node), node.args or ()
        counts = name == _SERIES and len(arguments) == 2 and all(map(_is_whole, arguments))
        measures_bytes = name == "length" and len(arguments) > 1
        self._require(name in _FUNCTIONS or counts, name not in self._scene.others, not measures_bytes)
        self._require(not (node.over or node.agg_within_group or node.func_variadic))

    def visit_SubLink(self, _ancestors: Any, node: Any) -> None:
        kind, operator = node.subLinkType, node.operName[-1].sval if node.operName else "="
        compares = kind in (SubLinkType.ANY_SUBLINK, SubLinkType.ALL_SUBLINK) and operator in _COMPARISONS
        scalar = kind == SubLinkType.EXPR_SUBLINK and _has_one_row(node.subselect)
        self._require(kind == SubLinkType.EXISTS_SUBLINK or compares or scalar)


def _is_constant(value: Any) -> bool:
    return isinstance(value, ast.A_Const) or (isinstance(value, ast.TypeCast) and isinstance(value.arg, ast.A_Const))


def _is_count(value: Any) -> bool:
    """Return whether it is a constant that LIMIT accepts."""
    return isinstance(value, ast.A_Const) and (integer(value) or 0) >= 0


def _column_of(value: Any) -> tuple[str, ...]:
    """Return the names of a column reference; none for any other node."""
    fields: Any = value.fields if isinstance(value, ast.ColumnRef) else ()
    return tuple(getattr(each, "sval", "") for each in fields)


def _is_pattern(value: Any) -> bool:
    """Return whether it is a constant pattern without escapes."""
    return isinstance(value, ast.A_Const) and "\\" not in getattr(value.val, "sval", "\\")


def _is_whole(value: Any) -> bool:
    """Return whether a value is certainly an integer."""
    return integer(value) is not None or (isinstance(value, ast.FuncCall) and name_of(value) in _INTEGRAL)


def _has_one_row(select: Any) -> bool:
    """Return whether a subquery has one row at most: by LIMIT, without FROM, or with aggregates of its own columns."""
    if integer(select.limitCount) in (0, 1):
        return True
    if select.op != SetOperation.SETOP_NONE or select.valuesLists or select.groupClause:
        return False
    targets: Any = select.targetList or ()
    if not select.fromClause:
        return not any(calls(target.val, (_SERIES,)) for target in targets)
    aliases = names_in(select).aliases
    return any(_aggregates(call, aliases) for target in targets for call in _Aggregates(target).calls)


def _aggregates(call: Any, aliases: set[str]) -> bool:
    """Return whether an aggregate belongs to the query with these aliases, not to one around it."""
    columns = names_in(call, deep=True).columns_of
    return bool(call.agg_star or (columns and columns <= aliases))


class _Aggregates(Reader):
    """The aggregates in an expression, outside of subqueries."""

    def __init__(self, expression: Any) -> None:
        super().__init__()
        self.calls: list[Any] = []
        self(expression)

    def visit_SubLink(self, _ancestors: Any, _node: Any) -> Any:
        return Skip

    def visit_FuncCall(self, _ancestors: Any, node: Any) -> None:
        if name_of(node) in AGGREGATES:
            self.calls.append(node)


# Connection, feature not supported, transaction state, rollback, syntax or access rule, resources, limits, object
# state, operator intervention, system error, configuration, foreign data, and internal errors, which `internal_error`
# judges (src/backend/utils/errcodes.txt).
_LEGAL: Final = frozenset({"08", "0A", "25", "40", "42", "53", "54", "55", "57", "58", "F0", "HV", "XX"})


def impossible_error(steps: Sequence[Step], sql: str, seen: Observation) -> Message | None:
    """Return the error of a query of the case if nothing in the query can legally raise it, else None."""
    if seen.outcome is not Outcome.ERROR or seen.sqlstate[:2] in _LEGAL or not is_infallible(sql, steps):
        return None
    return next((message for message in seen.messages if message.sqlstate == seen.sqlstate), None)


def origin_of(error: Message) -> str:
    """Return the identity of the error's cause: its SQLSTATE and the C function that raised it."""
    return f"{error.sqlstate} in {error.routine or 'an unnamed function'}, which nothing in the query can raise"


def raised(seen: Observation) -> str:
    """Return the errors of a step as text, one per line."""
    errors = (each for each in seen.messages if each.severity == "ERROR")
    return "\n".join(f"{each.severity}: {each.sqlstate}: {each.text}" for each in errors)
