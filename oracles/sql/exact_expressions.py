"""Exact expressions: those whose equal values are identical, according to their text and the types of columns.

A column is known by its name: each table of the case declares it with a type whose equal values are identical, and no
query or view gives the name to anything else.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from pglast import ast
from pglast.enums import A_Expr_Kind, AlterTableType, SubLinkType

from oracles.model.case import Kind, Step
from oracles.sql.building import trees
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
_ROUNDING: Final = frozenset({"round", "sign", "trunc"})
_DEFINING: Final = (ast.CreateTableAsStmt, ast.SelectStmt, ast.ViewStmt)  # by a query

# The names that a query gives, with the expressions; None is among these if some are unknown.
Given = Mapping[str, Collection[Any]]


class _Names(NamedTuple):
    """The columns that a statement declares, with their types, and the names that it gives to other expressions."""

    columns: tuple[tuple[str, str], ...]
    others: frozenset[str]


class Columns(NamedTuple):
    """The names of columns of which equal values are identical, and of those that may have distinguishable ones."""

    numeric: frozenset[str] = frozenset()  # numbers with one fixed scale
    others: frozenset[str] = frozenset()
    inexact: frozenset[str] = frozenset()

    def within(self, given: Given) -> "Columns":
        """Return the names that stand for such columns, or for such expressions, in a query that gives these names."""
        known = Columns(self.numeric - given.keys(), self.others - given.keys())
        pending = given.keys() - self.numeric - self.inexact
        while found := {name for name in pending if are_exact(given[name], Columns(others=known.others))}:
            known = known._replace(others=known.others | found)
            pending -= found
        return known


def exact_columns(steps: Iterable[Step], inexact: Collection[str]) -> Columns:
    """Return the columns of which equal values are identical; `inexact` are the other types of the case.

    There is none if equal texts may differ.
    """
    if "text" in inexact:
        return Columns()
    found = [_names(step.sql) for step in steps if step.kind is not Kind.QUERY]
    types: dict[str, set[str]] = defaultdict(set)
    for name, type_ in (column for each in found for column in each.columns):
        types[name].add(type_)
    exact = _PLAIN | _COLLATED | (frozenset() if _NUMERIC in inexact else {_NUMERIC})
    others = frozenset().union(*(each.others for each in found))
    known = {name: given for name, given in types.items() if given <= exact and name not in others}
    numeric = frozenset(name for name, given in known.items() if _NUMERIC in given)
    return Columns(numeric, frozenset(known) - numeric, others.union(types).difference(known))


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


def are_exact(values: Iterable[Any], columns: Columns) -> bool:
    """Return whether equal values of each expression are identical."""
    return all(_is_exact(value, columns) for value in values)


def _is_exact(value: Any, columns: Columns) -> bool:
    if isinstance(value, ast.A_Const):
        return not isinstance(value.val, ast.Float)
    if isinstance(value, ast.ColumnRef):
        return _column(value) in columns.numeric | columns.others
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


def _computes_exactly(value: Any, columns: Columns) -> bool:
    operator = value.name[-1].sval
    if value.kind not in _OPERATED or (value.kind == A_Expr_Kind.AEXPR_OP and operator in _COMPARING):
        return True  # a truth value
    if operator == "-" and not isinstance(value.rexpr, ast.A_Const):  # of times, it returns intervals
        return False
    operands = [each for each in (value.lexpr, value.rexpr) if each is not None]
    if operator == "/":  # quotients of integers are integers
        return are_exact(operands, Columns(others=columns.others))
    return (value.kind == A_Expr_Kind.AEXPR_NULLIF or operator in (*_COMPUTING, "-")) and are_exact(operands, columns)


def _selects_exactly(link: Any, columns: Columns) -> bool:
    if link.subLinkType not in (SubLinkType.EXPR_SUBLINK, SubLinkType.ARRAY_SUBLINK):
        return True  # a truth value
    values = picked_values(link.subselect)
    return values is not None and are_exact(values, columns)


def _results(case: Any) -> tuple[Any, ...]:
    return (*(when.result for when in case.args), *(() if case.defresult is None else (case.defresult,)))


_PARTS: Final[Mapping[type, Callable[[Any], tuple[Any, ...]]]] = {
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


def merged_values(node: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the values of which a node returns one, and so converts all to one type: the results of CASE, for example.

    There are several such lists for a set operation, one for each column.
    """
    if isinstance(node, ast.SelectStmt):
        sides = [picked_values(each) for each in (node.larg, node.rarg)]
        if sides[0] is not None and sides[1] is not None:
            yield from zip(*sides, strict=False)
    else:
        yield _PARTS[type(node)](node)


def merged_scales(values: Collection[Any], columns: Columns) -> frozenset[int]:
    """Return the known scales of these values, such as 0 of integers, if they may be numbers of different ones."""
    integral = Columns(others=columns.others)
    scales = {_scale(value, integral) for value in values if not _is_unknown(value)}
    return frozenset() if len(scales) < 2 else frozenset(each for each in scales if each is not None)


def _scale(value: Any, integral: Columns) -> int | None:
    """Return the number of digits of a value after the decimal point; None if it is unknown."""
    rounded = rounded_scale(value)
    return 0 if rounded is None and _is_exact(value, integral) else rounded


def rounded_scale(value: Any) -> int | None:
    """Return the scale of the numbers that a call of a rounding function returns; None for anything else."""
    if not isinstance(value, ast.FuncCall) or name_of(value) not in _ROUNDING or not value.args:
        return None
    return 0 if len(value.args) == 1 else integer(value.args[1])


def _is_unknown(value: Any) -> bool:
    """Return whether it is a literal that has the type of the values beside it."""
    return isinstance(value, ast.A_Const) and not isinstance(value.val, ast.Integer | ast.Float)


def given_names(tree: Any) -> Given:
    """Return the names that a query gives to other expressions than columns of the same name."""
    given = _given(tree)
    return given.others | {name: (None,) for name, _ in given.columns}


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
    given = _given(tree)
    return _Names(tuple(given.columns), frozenset(given.others))


def _given(tree: Any) -> "_Given":
    given = _Given()
    given(tree)
    given.add(given.bare & given.relations)
    return given


def _implied_name(value: Any) -> str:
    """Return the name of an output column that the query does not name, unless it is no column's (FigureColname)."""
    while isinstance(value, ast.A_Indirection | ast.CaseExpr | ast.CollateClause | ast.TypeCast):
        fields = [each.sval for each in getattr(value, "indirection", ()) if isinstance(each, ast.String)]
        if fields:
            return str(fields[-1])
        value = value.defresult if isinstance(value, ast.CaseExpr) else value.arg
    if isinstance(value, ast.FuncCall):
        return name_of(value)
    return _column(value) if isinstance(value, ast.ColumnRef) else ""


def _column(reference: Any) -> str:
    """Return the name of a column without qualifiers; "" for a star."""
    return str(getattr(reference.fields[-1], "sval", ""))


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
        self.others: dict[str, list[Any]] = defaultdict(list)
        self.bare: set[str] = set()  # references without qualifiers, which may be rows of a relation
        self.relations: set[str] = set()

    def visit_ColumnDef(self, _ancestors: Any, node: Any) -> None:
        self.columns.append((node.colname, _type_of(node.typeName) if node.typeName else ""))

    def visit_ResTarget(self, _ancestors: Any, node: Any) -> None:
        name = node.name or _implied_name(node.val)
        is_column = isinstance(node.val, ast.ColumnRef) and _column(node.val) == name
        if name and node.val is not None and not is_column:
            self.others[name].append(node.val)

    def visit_ColumnRef(self, _ancestors: Any, node: Any) -> None:
        if len(node.fields) == 1:
            self.bare.add(_column(node))

    def visit_RangeVar(self, _ancestors: Any, node: Any) -> None:
        self.relations.add(node.relname)

    def visit_RangeFunction(self, _ancestors: Any, node: Any) -> None:
        """Add the alias of a function, which is the name of its column, too."""
        self.add(() if node.alias is None else (node.alias.aliasname,))

    def visit_Alias(self, _ancestors: Any, node: Any) -> None:
        self.relations.add(node.aliasname)
        self.add(name.sval for name in node.colnames or ())

    def visit_CommonTableExpr(self, _ancestors: Any, node: Any) -> None:
        self.add(name.sval for name in node.aliascolnames or ())

    def visit_ViewStmt(self, _ancestors: Any, node: Any) -> None:
        self.add(name.sval for name in node.aliases or ())

    def visit_IntoClause(self, _ancestors: Any, node: Any) -> None:
        self.add(name.sval for name in node.colNames or ())

    def visit_RangeTableFuncCol(self, _ancestors: Any, node: Any) -> None:
        self.add((node.colname,))

    def visit_JsonTableColumn(self, _ancestors: Any, node: Any) -> None:
        self.add((node.name,))

    def add(self, names: Iterable[str]) -> None:
        """Add names of unknown expressions."""
        for name in names:
            self.others[name].append(None)
