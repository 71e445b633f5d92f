"""Exact expressions: those whose equal values are identical, according to their text and the types of columns.

A column is known by its name: each table of the case declares it with a type whose equal values are identical, and no
query or view gives the name to anything else.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from pglast import ast
from pglast.enums import A_Expr_Kind, AlterTableType, SubLinkType

from oracles.model.case import Kind, Step
from oracles.sql.building import columns_in, trees
from oracles.sql.determinism import ADDING, INEXACT_FUNCTIONS, name_of
from oracles.sql.reading import Reader
from oracles.sql.total_order import integer, shown_targets

CACHED: Final = 4096  # statements
_NUMERIC: Final = "numeric"
_COLLATED: Final = frozenset({"text", "varchar", "bpchar"})  # bpchar only with a length
_PLAIN: Final = frozenset(
    {
        *("bigserial", "bool", "bytea", "date", "int2", "int4", "int8", "serial", "smallserial", "time", "timestamp"),
        *("timestamptz", "uuid"),
    }
)
_COMPUTING: Final = frozenset({"%", "*", "+", "||"})  # other operators may return values of other types
_TRUTHS: Final = (ast.BoolExpr, ast.BooleanTest, ast.NullTest)
_OPERATED: Final = frozenset({A_Expr_Kind.AEXPR_OP, A_Expr_Kind.AEXPR_NULLIF})
_COMPARING: Final = frozenset({"<", "<=", "<>", "=", ">", ">="})
_INEXACT_CALLS: Final = INEXACT_FUNCTIONS | (ADDING - {"sum"})


_DEFINING: Final = (ast.CreateTableAsStmt, ast.SelectStmt, ast.ViewStmt)  # by a query


class _Names(NamedTuple):
    """The columns that a statement declares, with their types, and the names that it gives to other expressions."""

    columns: tuple[tuple[str, str], ...]
    others: frozenset[str]


def exact_columns(steps: Iterable[Step], inexact: Collection[str]) -> frozenset[str]:
    """Return the names of columns of which equal values are identical; `inexact` are the other types of the case.

    There is none if equal texts may differ.
    """
    if "text" in inexact:
        return frozenset()
    found = [_names(step.sql) for step in steps if step.kind is not Kind.QUERY]
    types: dict[str, set[str]] = defaultdict(set)
    for name, type_ in (column for each in found for column in each.columns):
        types[name].add(type_)
    exact = _PLAIN | _COLLATED | (frozenset() if _NUMERIC in inexact else {_NUMERIC})
    others = frozenset().union(*(each.others for each in found))
    return frozenset(name for name, given in types.items() if given <= exact) - others


def picked_values(node: Any) -> tuple[Any, ...] | None:
    """Return the expressions of which DISTINCT, LIMIT or a set operation picks values; None if they are unknown."""
    if node.larg is not None:
        sides = picked_values(node.larg), picked_values(node.rarg)
        return None if sides[0] is None or sides[1] is None else sides[0] + sides[1]
    if node.valuesLists:
        return tuple(value for row in node.valuesLists for value in row)
    targets = shown_targets(node)
    return None if targets is None else tuple(target.val for target in targets)


def grouped_values(select: Any) -> tuple[Any, ...]:
    """Return the expressions by which a query groups rows."""
    targets: Any = select.targetList or ()
    keys = [(each, integer(each)) for each in _keys(select.groupClause)]
    return tuple(targets[number - 1].val if number and number <= len(targets) else key for key, number in keys)


def _keys(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, ast.GroupingSet):
            yield from _keys(item.content or ())
        elif isinstance(item, ast.RowExpr):
            yield from _keys(item.args or ())
        else:
            yield item


def are_exact(values: Iterable[Any], columns: Collection[str]) -> bool:
    """Return whether equal values of each expression are identical. `columns` are exact."""
    return all(_is_exact(value, columns) for value in values)


def _is_exact(value: Any, columns: Collection[str]) -> bool:
    if isinstance(value, ast.A_Const):
        return not isinstance(value.val, ast.Float)
    if isinstance(value, ast.ColumnRef):
        return getattr(value.fields[-1], "sval", "") in columns
    if isinstance(value, ast.TypeCast):
        return _type_of(value.typeName) in _PLAIN | _COLLATED
    if isinstance(value, ast.FuncCall):
        exact = name_of(value) not in _INEXACT_CALLS and are_exact(value.args or (), columns)
        return exact or name_of(value) == "count"
    if isinstance(value, ast.A_Expr):
        return _computes_exactly(value, columns)
    if isinstance(value, ast.SubLink):
        return _selects_exactly(value, columns)
    parts = _PARTS.get(type(value))
    if parts is not None:
        return are_exact(parts(value), columns)
    return isinstance(value, _TRUTHS)


def _computes_exactly(value: Any, columns: Collection[str]) -> bool:
    operator = value.name[-1].sval
    if value.kind not in _OPERATED or (value.kind == A_Expr_Kind.AEXPR_OP and operator in _COMPARING):
        return True  # a truth value
    if operator == "-" and not isinstance(value.rexpr, ast.A_Const):  # of times, it returns intervals
        return False
    operands = [each for each in (value.lexpr, value.rexpr) if each is not None]
    return (value.kind == A_Expr_Kind.AEXPR_NULLIF or operator in (*_COMPUTING, "-")) and are_exact(operands, columns)


def _selects_exactly(link: Any, columns: Collection[str]) -> bool:
    if link.subLinkType not in (SubLinkType.EXPR_SUBLINK, SubLinkType.ARRAY_SUBLINK):
        return True  # a truth value
    values = picked_values(link.subselect)
    return values is not None and are_exact(values, columns)


def _results(case: Any) -> tuple[Any, ...]:
    return (*(when.result for when in case.args), *(() if case.defresult is None else (case.defresult,)))


_PARTS: Final = {
    ast.A_Indirection: lambda value: (value.arg,),
    ast.A_ArrayExpr: lambda value: value.elements or (),
    ast.CaseExpr: _results,
    ast.CoalesceExpr: lambda value: value.args,
    ast.CollateClause: lambda value: (value.arg,),
    ast.MinMaxExpr: lambda value: value.args,
    ast.RowExpr: lambda value: value.args or (),
}


def _type_of(named: Any) -> str:
    """Return the name of a type, or of an array's elements; "" if the type lacks the length or scale that it needs."""
    name = named.names[-1].sval if named.names else ""
    return "" if name in (_NUMERIC, "bpchar") and not named.typmods else str(name)


def given_names(tree: Any) -> frozenset[str]:
    """Return the names that a query gives to other expressions than columns of the same name."""
    found = _read(tree)
    return found.others.union(name for name, _ in found.columns)


@lru_cache(CACHED)
def _names(sql: str) -> _Names:
    """Return the names of a statement; those of its queries only if it stores or names their results."""
    found = [(_read(each.stmt), isinstance(each.stmt, _DEFINING)) for each in trees(sql)]
    columns = tuple(column for names, _ in found for column in names.columns)
    return _Names(columns, frozenset().union(*(names.others for names, defines in found if defines), _changed(sql)))


def _changed(sql: str) -> frozenset[str]:
    changed = _Changed()
    changed(trees(sql))
    return frozenset(changed.names)


def _read(tree: Any) -> _Names:
    given = _Given()
    given(tree)
    return _Names(tuple(given.columns), frozenset(given.others))


class _Changed(Reader):
    """The names of columns that ALTER gives, or whose type it changes."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def visit_AlterTableCmd(self, _ancestors: Any, node: Any) -> None:
        if node.subtype == AlterTableType.AT_AlterColumnType:
            self.names.add(node.name)

    def visit_RenameStmt(self, _ancestors: Any, node: Any) -> None:
        self.names.add(node.newname)


class _Given(Reader):
    """The names that a tree gives to columns of tables, and to results of queries."""

    def __init__(self) -> None:
        super().__init__()
        self.columns: list[tuple[str, str]] = []
        self.others: set[str] = set()

    def visit_ColumnDef(self, _ancestors: Any, node: Any) -> None:
        self.columns.append((node.colname, _type_of(node.typeName) if node.typeName else ""))

    def visit_ResTarget(self, _ancestors: Any, node: Any) -> None:
        fields: Any = node.val.fields if isinstance(node.val, ast.ColumnRef) else ()
        if node.name:
            self.others.update({node.name} - {getattr(each, "sval", "") for each in fields[-1:]})
        elif isinstance(node.val, ast.FuncCall):
            self.others.add(name_of(node.val))
        elif node.val is not None and not fields:  # a cast, for example, has the name of its argument
            self.others.update(getattr(column.fields[-1], "sval", "") for column in columns_in(node.val))

    def visit_Alias(self, _ancestors: Any, node: Any) -> None:
        self._add_all(node.colnames)

    def visit_CommonTableExpr(self, _ancestors: Any, node: Any) -> None:
        self._add_all(node.aliascolnames)

    def visit_ViewStmt(self, _ancestors: Any, node: Any) -> None:
        self._add_all(node.aliases)

    def visit_IntoClause(self, _ancestors: Any, node: Any) -> None:
        self._add_all(node.colNames)

    def visit_RangeTableFuncCol(self, _ancestors: Any, node: Any) -> None:
        self.others.add(node.colname)

    def visit_JsonTableColumn(self, _ancestors: Any, node: Any) -> None:
        self.others.add(node.name)

    def _add_all(self, names: Any) -> None:
        self.others.update(name.sval for name in names or ())
