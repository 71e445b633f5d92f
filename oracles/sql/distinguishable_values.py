"""Equal but distinguishable ("inexact") values, such as 1.0 and 1.00, and sums that depend on the order of rows.

The plan determines which of several equal values a group, DISTINCT or LIMIT returns: the query *picks* a value. A
result is undetermined in four cases:

- The query picks values, returns an inexact type, and the case has columns of such types.
- The query picks values, tells equal ones apart afterwards (`max(n)::text`), and the case has columns of such types.
- The query picks values, and may create inexact ones itself, for any use. Means and other quotients of numbers have any
  number of digits. A CASE, for example, that returns integers and numbers gives the integers the scale 0.
- The query adds up values that may be floating-point numbers, and does not return the sum, which would show its type.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from pglast import ast
from pglast.enums import A_Expr_Kind, ObjectType, SetOperation, SubLinkType
from pglast.visitors import Ancestor

from oracles.model.case import Step
from oracles.sql.building import sql_of, trees
from oracles.sql.case_views import used_names
from oracles.sql.determinism import ADDING, AGGREGATES, INEXACT_FUNCTIONS, PICKING, name_of
from oracles.sql.exact_expressions import (
    Columns,
    Given,
    are_exact,
    given_names,
    grouped_values,
    merged_scales,
    merged_values,
    picked_values,
    rounded_scale,
)
from oracles.sql.reading import Reader
from oracles.sql.total_order import is_cut

CACHED: Final = 4096  # statements
_FLOATS: Final = frozenset({"float4", "float8"})
_NUMERIC: Final = "numeric"
_COLLATED: Final = "text"  # represents all types with collations
_SCALED: Final = "numeric of {} digits"  # after the decimal point
_PADDED: Final = "bpchar"  # without a length, equal values may differ in trailing blanks

# Type OIDs of values, arrays and ranges (or names, for types without a fixed OID) -> inexact type.
_SHOWN: Final = {
    **dict.fromkeys(("1700", "1231", "3906", "4532"), _NUMERIC),
    **dict.fromkeys(("1186", "1187"), "interval"),
    **dict.fromkeys(("3802", "3807"), "jsonb"),
    **dict.fromkeys(("25", "1009", "1043", "1015"), _COLLATED),
    **dict.fromkeys(("1042", "1014"), _PADDED),
    **dict.fromkeys(("3615", "3645"), "tsquery"),
    "citext": "citext",
}
ANY_ROW: Final = frozenset({"2249"})  # OID of record, whose fields may have any type
_ROWS: Final = ANY_ROW | {"2287"}  # OIDs of types that may contain any value, as user-defined types may
_INEXACT: Final = _FLOATS | frozenset(_SHOWN.values()) - {_COLLATED}

# Type -> the inexact type that it is or contains, or that operations on it return: coordinates, differences of times.
_HOLDS: Final = {**{name: name for name in _INEXACT}, **dict.fromkeys(("numrange", "nummultirange"), _NUMERIC)}
_GIVES: Final = {
    **dict.fromkeys(("box", "circle", "line", "lseg", "path", "point", "polygon"), "float8"),
    **dict.fromkeys(("time", "timestamp", "timestamptz"), "interval"),
}
# Types of values that are or contain inexact values: also rows of columns that a function defines.
MAY_HOLD_INEXACT: Final = {*_HOLDS, *(name for name, given in _GIVES.items() if given == "float8"), "record"}
_SCALING: Final = frozenset({"*", "/", "%"})
_DIGITS: Final = re.compile(r"[+-]?\d+(?:\.(\d*))?")
_MADE_BY: Final = dict.fromkeys(("^", "|/", "||/", "<->", "@-@"), _FLOATS)  # operators

# Types whose equal values are identical, so a cast to one of them removes the difference.
_PLAIN: Final = frozenset({"bool", "date", "int2", "int4", "int8", "text", "varchar"})
_CONDITIONS: Final = frozenset({"agg_filter", "havingClause", "quals", "whereClause"})
_COMPARING: Final = frozenset({"<", "<=", "<>", "=", ">", ">="})
_ASKING: Final = frozenset(
    {
        *(A_Expr_Kind.AEXPR_OP_ANY, A_Expr_Kind.AEXPR_OP_ALL, A_Expr_Kind.AEXPR_DISTINCT, A_Expr_Kind.AEXPR_IN),
        *(A_Expr_Kind.AEXPR_NOT_DISTINCT, A_Expr_Kind.AEXPR_LIKE, A_Expr_Kind.AEXPR_ILIKE, A_Expr_Kind.AEXPR_SIMILAR),
    }
)
# Operators that return equal values for equal ones. 30 days and a month are equal, but not after the same time.
_SHIFTING: Final = frozenset({"+", "-"})
_ALIKE: Final = _COMPARING | {"%", "*", "/", "^"}
_ALIKE_CASTS: Final = frozenset({"bool", "int2", "int4", "int8"})
_TELLING: Final = (
    *(ast.CollateClause, ast.JsonFuncExpr, ast.JsonObjectConstructor, ast.JsonArrayConstructor, ast.JsonScalarExpr),
    *(ast.JsonSerializeExpr, ast.XmlExpr, ast.XmlSerialize),
)
_MERGING: Final = (ast.CaseExpr, ast.CoalesceExpr, ast.MinMaxExpr)
_BEFORE_GROUPS: Final = frozenset({"fromClause", "groupClause", "whereClause", "withClause"})
_VIEW: Final = "VIEW"
_NO_COLUMNS: Final = Columns()
_Place = tuple[tuple[int, Any], ...]
_DECLARING: Final = (
    *(ast.AlterTableStmt, ast.CompositeTypeStmt, ast.CreateDomainStmt, ast.CreateForeignTableStmt),
    *(ast.CreateRangeStmt, ast.CreateStmt),
)


def inexact_types(steps: Iterable[Step]) -> frozenset[str]:
    """Return the types of which these steps may store equal but distinguishable values.

    Numbers with a fixed number of digits after the decimal point are a type of their own. It is inexact only if there
    are numbers with another fixed number of digits.
    """
    declared = frozenset().union(*(_declared(step.sql) for step in steps))
    scales = _scales(declared)
    return declared - scales | {_NUMERIC} if len(scales) > 1 else declared


def _scales(types: Collection[str]) -> frozenset[str]:
    """Return the types of numbers with a fixed number of digits after the decimal point."""
    return frozenset(types) - _INEXACT - {_COLLATED}


def is_exact(sql: str, shown: Iterable[str], stored: Collection[str], columns: Columns = _NO_COLUMNS) -> bool:
    """Return whether a query's result is determined byte by byte.

    `shown` are the types of the result (as in `Column.type`), `stored` the inexact types of the data, and `columns`
    those that are known to be exact (`exact_columns`).
    """
    return _is_exact(sql, frozenset(shown), frozenset(stored), columns)


@lru_cache(CACHED)  # several oracles judge a query, each several times
def _is_exact(sql: str, shown: frozenset[str], stored: frozenset[str], columns: Columns) -> bool:
    used, scales = _used(sql), _scales(stored)
    inexact = stored - scales
    if used.picks and any(_is_inexact(each, inexact) for each in shown):
        return False
    if inexact and used.tells_picked(inexact, columns):
        return False
    if used.picks_quotients(columns, means_only=not scales):
        return False
    adds_floats = bool(used.adds) and not _FLOATS.isdisjoint(inexact)
    made = used.scales(used.picks) | used.merged_scales(columns)
    many = bool(made) and len(scales | made) > 1
    return not (adds_floats or many or used.reach(used.picks, _INEXACT) or used.reach(used.adds, _FLOATS))


def _is_inexact(type_: str, inexact: Collection[str]) -> bool:
    """Return whether values of a type may be of these inexact types, or contain them."""
    made_by_users = not type_.isdigit() and type_ not in _SHOWN
    return _SHOWN.get(type_) in inexact or (bool(inexact) and (made_by_users or type_ in _ROWS))


def inexact_views(steps: Iterable[Step], stored: Collection[str], columns: Columns) -> frozenset[str]:
    """Return the names of created views that may pick one of several distinguishable values, or use such a view."""
    found: set[str] = set()
    for step in steps:
        for name, sql in _views(step.sql) if _VIEW in step.sql.upper() else ():
            picks = bool(frozenset(stored) - _scales(stored)) and _used(sql).picks_inexact(columns)
            if picks or not is_exact(sql, (), stored, columns) or not found.isdisjoint(used_names(sql)):
                found.add(name)
    return frozenset(found)


@lru_cache(CACHED)
def _views(sql: str) -> tuple[tuple[str, str], ...]:
    """Return the views that a statement creates, with their queries."""
    created: list[Any] = [each.stmt for each in trees(sql) if isinstance(each.stmt, ast.ViewStmt)]
    return tuple((view.view.relname, sql_of(view.query)) for view in created)


@lru_cache(CACHED)
def _declared(sql: str) -> frozenset[str]:
    declared = _Declared()
    declared(trees(sql))
    return frozenset(declared.types)


@lru_cache(CACHED)
def _used(sql: str) -> "_Used":
    tree = trees(sql)
    used = _Used([id(target.val) for each in tree for target in getattr(each.stmt, "targetList", None) or ()])
    used(tree)
    used.given = given_names(tree)
    return used


class _Declared(Reader):
    def __init__(self) -> None:
        super().__init__()
        self.types: set[str] = set()

    def visit(self, _ancestors: Any, node: Any) -> None:
        if isinstance(node, _DECLARING):
            named = _Named()
            named(node)
            self.types |= named.types

    def visit_ViewStmt(self, _ancestors: Any, node: Any) -> None:
        self.types |= _used(sql_of(node.query)).made

    def visit_CreateTableAsStmt(self, _ancestors: Any, _node: Any) -> None:
        self.types |= _INEXACT  # whatever its columns are

    def visit_IntoClause(self, _ancestors: Any, _node: Any) -> None:
        self.types |= _INEXACT

    def visit_DefineStmt(self, _ancestors: Any, node: Any) -> None:
        if node.kind == ObjectType.OBJECT_COLLATION and any(
            each.defname == "deterministic" for each in node.definition or ()
        ):
            self.types |= {_COLLATED, _PADDED}


class _Named(Reader):
    """The inexact types that a tree names, and types of numbers with a fixed number of digits."""

    def __init__(self) -> None:
        super().__init__()
        self.types: set[str] = set()

    def visit_TypeName(self, _ancestors: Any, node: Any) -> None:
        name = node.names[-1].sval if node.names else ""
        if name == _NUMERIC and node.typmods:
            self.types.add(_SCALED.format(sql_of(node.typmods[-1]) if len(node.typmods) > 1 else "0"))
        elif name in _GIVES:
            self.types.add(_GIVES[name])
        else:
            self.types |= _held(node)


def _held(named: Any) -> frozenset[str]:
    """Return the inexact type that a named type is or contains, if there is one."""
    name = named.names[-1].sval if named.names else ""
    held = name in _HOLDS and not (name == _PADDED and named.typmods)
    return frozenset({_HOLDS[name]}) if held else frozenset()


class _Spot(NamedTuple):
    """An operation's place, the members of all nodes around it, and its query. Nodes are given by their identities."""

    place: _Place
    path: frozenset[tuple[int, Any]]
    query: int  # the innermost query around it


class _Choice(NamedTuple):
    """A node that picks values: its place, and the members of nodes that are evaluated before; "" for all of a node."""

    place: _Place
    before: frozenset[tuple[int, Any]]
    values: tuple[Any, ...] | None  # the expressions whose values are picked; None: unknown
    query: int  # whose values it picks
    around: frozenset[int]  # the nodes around it

    def is_exact(self, columns: Columns) -> bool:
        """Return whether equal values are identical, because these columns are exact."""
        return self.values is not None and are_exact(self.values, columns)

    def follows(self, spot: _Spot) -> bool:
        """Return whether a value that is computed there may be picked."""
        inside = any(node == self.query for node, _ in spot.path)
        is_after = inside and not self._is_before(spot)
        is_within = spot.query != self.query and spot.query in self.around
        return not (is_after or is_within) and self.place[: len(spot.place)] == spot.place

    def precedes(self, spot: _Spot) -> bool:
        """Return whether a picked value may reach an operation."""
        return not self._is_before(spot) and spot.place[: len(self.place)] == self.place

    def _is_before(self, spot: _Spot) -> bool:
        return any((node, member) in self.before or (node, "") in self.before for node, member in spot.path)


class _Used(Reader):
    """Places in which a query picks one of several equal values, tells equal values apart, adds up values that it does
    not return, or creates inexact values.

    A place is the list of conditions and casts around it, from the outermost. Only a truth value leaves a condition,
    and only the cast value leaves a cast.
    """

    def __init__(self, shown: Collection[int]) -> None:
        super().__init__()
        self.picks: set[_Place] = set()
        self.adds: set[_Place] = set()
        self.given: Given = {}
        self._choices: list[_Choice] = []  # what picks values, and where
        self._quotients: list[tuple[_Spot, tuple[Any, ...]]] = []  # with the operands; means have none
        self._merged: list[tuple[_Spot, tuple[Any, ...]]] = []  # with the values, of which one is returned
        self._tells: list[tuple[_Spot, str]] = []  # with the operator's name, if it is one
        self._made: dict[str, set[_Place]] = defaultdict(set)  # by inexact type
        self._shown = shown

    def tells_picked(self, stored: Collection[str], columns: Columns) -> bool:
        """Return whether the query may tell apart equal values of these types after it has picked one of them."""
        telling = [spot for spot, name in self._tells if name not in _SHIFTING or "interval" in stored]
        return any(any(map(choice.precedes, telling)) for choice in self._inexact_choices(columns))

    def picks_inexact(self, columns: Columns) -> bool:
        """Return whether one of several distinguishable values may be picked, if the data have any."""
        return bool(self._inexact_choices(columns))

    @property
    def made(self) -> frozenset[str]:
        """Return the inexact types that may be created."""
        return frozenset(self._made) | (frozenset({_NUMERIC}) if self._quotients else frozenset())

    def picks_quotients(self, columns: Columns, *, means_only: bool) -> bool:
        """Return whether the query may pick quotients of numbers, such as means, whose number of digits varies."""
        known = Columns(others=columns.within(self.given).others)
        made = [
            spot for spot, operands in self._quotients if not operands or not (means_only or are_exact(operands, known))
        ]
        return any(choice.follows(spot) for choice in self._inexact_choices(columns) for spot in made)

    def merged_scales(self, columns: Columns) -> frozenset[str]:
        """Return the types, with a fixed number of digits, of numbers that are merged with others and then picked."""
        known = columns.within(self.given)
        picked = (
            merged_scales(values, known)
            for spot, values in self._merged
            if any(choice.follows(spot) for choice in self._choices)
        )
        return frozenset(_SCALED.format(digits) for digits in frozenset().union(*picked))

    def _inexact_choices(self, columns: Columns) -> list[_Choice]:
        """Return what may pick one of several distinguishable values."""
        known = columns.within(self.given)
        return [choice for choice in self._choices if not (any(columns) and choice.is_exact(known))]

    def reach(self, places: Iterable[_Place], types: Iterable[str]) -> bool:
        """Return whether values of these types may be created that reach one of these places."""
        made = set().union(*(self._made.get(each, ()) for each in types))
        return any(place[: len(origin)] == origin for place in places for origin in made)

    def scales(self, places: Iterable[_Place]) -> frozenset[str]:
        """Return the types, with a fixed number of digits, of constants that reach one of these places."""
        return frozenset(each for each in _scales(self._made) if self.reach(places, (each,)))

    def visit(self, ancestors: Any, node: Any) -> None:
        if isinstance(node, _TELLING):
            self._tell(ancestors)
        if isinstance(node, _MERGING):
            self._merge(ancestors, node)

    def visit_TypeCast(self, ancestors: Any, node: Any) -> None:
        if node.typeName.names[-1].sval not in _ALIKE_CASTS and not isinstance(node.arg, ast.A_Const):
            self._tell(Ancestor(ancestors, node, "arg"))

    def _pick(self, ancestors: Any, values: Any, before: Collection[tuple[int, Any]], query: int) -> None:
        place = _place(ancestors)
        self.picks.add(place)
        around = frozenset(node for node, _ in _path(ancestors))
        self._choices.append(_Choice(place, frozenset(before), values, query, around))

    def _merge(self, ancestors: Any, node: Any) -> None:
        self._merged += ((_spot(ancestors), values) for values in merged_values(node))

    def _tell(self, ancestors: Any, name: str = "") -> None:
        self._tells.append((_spot(ancestors), name))

    def _make(self, ancestors: Any, types: Iterable[str]) -> None:
        place = _place(ancestors)
        for each in types:
            self._made[each].add(place)

    def visit_SelectStmt(self, ancestors: Any, node: Any) -> None:
        if node.op != SetOperation.SETOP_NONE:
            self._merge(ancestors, node)
        keeps_all = node.op == SetOperation.SETOP_UNION and node.all
        merges = node.op != SetOperation.SETOP_NONE and not keeps_all
        if node.groupClause:
            self._pick(ancestors, grouped_values(node), _before_groups(id(node)), id(node))
        if node.distinctClause or merges or is_cut(node):
            self._pick(ancestors, picked_values(node), {(id(node), "")}, id(node))

    def visit_SubLink(self, ancestors: Any, node: Any) -> None:
        """Record an array subquery: its ORDER BY does not determine the order of equal values."""
        if node.subLinkType == SubLinkType.ARRAY_SUBLINK:
            self._pick(ancestors, picked_values(node.subselect), {(id(node), "")}, id(node.subselect))

    def visit_FuncCall(self, ancestors: Any, node: Any) -> None:
        if name_of(node) in PICKING or node.agg_distinct:
            before = {(id(node), ""), *_before_aggregates(ancestors)}
            self._pick(ancestors, node.args or (), before, _query_of(ancestors))
        if name_of(node) not in AGGREGATES:
            self._tell(ancestors)
        if name_of(node) in ADDING - {"sum"} and not _is_rounded(ancestors):
            self._quotients.append((_spot(ancestors), ()))
        if name_of(node) in ADDING and id(node) not in self._shown:
            self.adds.add(_place(ancestors))
        if name_of(node) in INEXACT_FUNCTIONS:
            self._make(ancestors, _INEXACT)

    def visit_TypeName(self, ancestors: Any, node: Any) -> None:
        cast = ancestors.node
        if _held(node) == {_NUMERIC} and isinstance(cast, ast.TypeCast) and isinstance(cast.arg, ast.A_Const):
            self._make(ancestors, (_scale(cast.arg.val, ancestors.parent),))
        else:
            self._make(ancestors, _held(node))

    def visit_A_Expr(self, ancestors: Any, node: Any) -> None:
        self._make(ancestors, _MADE_BY.get(_operator(node), ()))
        if _operator(node) == "/" and not _is_rounded(ancestors):
            self._quotients.append((_spot(ancestors), (node.lexpr, node.rexpr)))
        if node.kind == A_Expr_Kind.AEXPR_OP and _operator(node) not in _ALIKE:
            self._tell(ancestors, _operator(node))

    def visit_Float(self, ancestors: Any, node: Any) -> None:
        if not node.fval.isdigit():  # else it is a large integer
            self._make(ancestors, (_scale(node, ancestors.parent),))


def _scale(constant: Any, around: Any) -> str:
    """Return the inexact type of a numeric constant; products and quotients may have any number of digits."""
    multiplies = isinstance(around.node, ast.A_Expr) and _operator(around.node) in _SCALING
    texts = (str(getattr(constant, name)) for name in ("sval", "fval", "ival") if hasattr(constant, name))
    digits = _DIGITS.fullmatch(next(texts, ""))
    return _NUMERIC if multiplies or digits is None else _SCALED.format(len(digits[1] or ""))


def _operator(node: Any) -> str:
    """Return the name of an operator without its schema."""
    return str(node.name[-1].sval)


def _place(ancestors: Any) -> _Place:
    """Return the conditions and casts around a node, from the outermost."""
    around = []
    while ancestors is not None:
        if _confines_values(ancestors.node, ancestors.member):
            around.append((id(ancestors.node), ancestors.member))
        ancestors = ancestors.parent
    return tuple(reversed(around))


def _path(ancestors: Any) -> frozenset[tuple[int, Any]]:
    """Return the nodes around a node, each with the member that leads to it."""
    around = set()
    while ancestors is not None:
        around.add((id(ancestors.node), ancestors.member))
        ancestors = ancestors.parent
    return frozenset(around)


def _spot(ancestors: Any) -> _Spot:
    return _Spot(_place(ancestors), _path(ancestors), _query_of(ancestors))


def _query_of(ancestors: Any) -> int:
    """Return the identity of the innermost query around a node."""
    while ancestors is not None and not isinstance(ancestors.node, ast.SelectStmt):
        ancestors = ancestors.parent
    return 0 if ancestors is None else id(ancestors.node)


def _before_groups(query: int) -> set[tuple[int, Any]]:
    """Return the members of a query that are evaluated before it groups rows."""
    return {(query, member) for member in _BEFORE_GROUPS}


def _before_aggregates(ancestors: Any) -> set[tuple[int, Any]]:
    """Return the members of a query that are evaluated before an aggregate; none if that belongs to an outer query."""
    before = _before_groups(_query_of(ancestors))
    return before if _path(ancestors).isdisjoint(before) else set()


def _is_rounded(ancestors: Any) -> bool:
    """Return whether a value is an argument of a function that rounds it to a fixed number of digits."""
    while isinstance(ancestors.node, tuple):
        ancestors = ancestors.parent
    return rounded_scale(ancestors.node) is not None


def _confines_values(node: Any, member: Any) -> bool:
    """Return whether this member of a node is a condition, an operand of one, or is cast to a plain type."""
    if isinstance(node, ast.TypeCast):
        typed: Any = node.typeName
        return member == "arg" and typed.names[-1].sval in _PLAIN
    if isinstance(node, ast.A_Expr):
        return node.kind in _ASKING or (node.kind == A_Expr_Kind.AEXPR_OP and _operator(node) in _COMPARING)
    return isinstance(node, ast.NullTest) or member in _CONDITIONS
