"""Loose values: equal ones that are not the same, as 1.0 and 1.00, and sums that depend on the order of rows.

Which of its equal values a group shows is up to the plan. So where the case itself has columns of such types, a query
is left alone that picks values and shows such a one, or that adds up what may be floating-point numbers and does not
show as which type.
"""

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any, Final

from pglast import ast
from pglast.enums import ObjectType, SetOperation
from pglast.stream import RawStream
from pglast.visitors import Visitor

from oracles.case import Step
from oracles.determinism import name_of
from oracles.parsing import trees

CACHED: Final = 4096  # statements
_FLOATS: Final = frozenset({"float4", "float8"})
_NUMERIC: Final = "numeric"
_COLLATED: Final = "text"  # stands for all that is collated
_ADDING: Final = frozenset({"avg", "stddev", "sum"})
_PICKING: Final = frozenset({"max", "min"})

# Type OIDs (or the name, where there is none that is the same everywhere) of values, arrays and ranges -> loose type.
_SHOWN: Final = {
    **dict.fromkeys(("1700", "1231", "3906", "4532"), _NUMERIC),
    **dict.fromkeys(("1186", "1187"), "interval"),
    **dict.fromkeys(("3802", "3807"), "jsonb"),
    **dict.fromkeys(("25", "1009", "1042", "1014", "1043", "1015"), _COLLATED),
    "citext": "citext",
}
_LOOSE: Final = _FLOATS | frozenset(_SHOWN.values()) - {_COLLATED}
_DECLARING: Final = (
    *(ast.AlterTableStmt, ast.CompositeTypeStmt, ast.CreateDomainStmt, ast.CreateForeignTableStmt),
    *(ast.CreateRangeStmt, ast.CreateStmt),
)


def loose_types(steps: Iterable[Step]) -> frozenset[str]:
    """Return the types of which these steps may store values that are equal and not the same."""
    declared = frozenset().union(*(_declared(step.sql) for step in steps))
    scales = declared - _LOOSE - {_COLLATED}
    return declared - scales | ({_NUMERIC} if len(scales) > 1 else frozenset())


def is_tight(sql: str, shown: Iterable[str], loose: Collection[str]) -> bool:
    """Tell whether a query that shows these types (as in `Column.type`) returns the same of data with loose types."""
    picks, adds = _used(sql)
    shows_loose = any(_SHOWN.get(each) in loose for each in shown)
    return not (picks and shows_loose) and not (adds and not _FLOATS.isdisjoint(loose))


@lru_cache(CACHED)
def _declared(sql: str) -> frozenset[str]:
    declared = _Declared()
    declared(trees(sql))
    return frozenset(declared.types)


@lru_cache(CACHED)
def _used(sql: str) -> tuple[bool, bool]:
    """Return whether a query picks one of several equal values, and whether it adds up what it does not show."""
    tree = trees(sql)
    used = _Used([id(target.val) for each in tree for target in getattr(each.stmt, "targetList", None) or ()])
    used(tree)
    return used.picks, used.adds


class _Declared(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.types: set[str] = set()

    def visit(self, _ancestors: Any, node: Any) -> None:
        if isinstance(node, _DECLARING):
            named = _Named()
            named(node)
            self.types |= named.types

    def visit_CreateTableAsStmt(self, _ancestors: Any, _node: Any) -> None:
        self.types |= _LOOSE  # whatever its columns are

    def visit_IntoClause(self, _ancestors: Any, _node: Any) -> None:
        self.types |= _LOOSE

    def visit_DefineStmt(self, _ancestors: Any, node: Any) -> None:
        if node.kind == ObjectType.OBJECT_COLLATION and any(
            each.defname == "deterministic" for each in node.definition or ()
        ):
            self.types.add(_COLLATED)


class _Named(Visitor):
    """The loose types that are named, and how many digits after the point numbers have that are no looser than that."""

    def __init__(self) -> None:
        super().__init__()
        self.types: set[str] = set()

    def visit_TypeName(self, _ancestors: Any, node: Any) -> None:
        name = node.names[-1].sval if node.names else ""
        if name == _NUMERIC and node.typmods:
            self.types.add(RawStream()(node.typmods[-1]) if len(node.typmods) > 1 else "0")
        elif name in _LOOSE:
            self.types.add(name)


class _Used(Visitor):
    def __init__(self, shown: Collection[int]) -> None:
        super().__init__()
        self.picks = self.adds = False
        self._shown = shown

    def visit_SelectStmt(self, _ancestors: Any, node: Any) -> None:
        merges = node.op != SetOperation.SETOP_NONE and not node.all
        self.picks |= bool(node.distinctClause or node.groupClause or merges)

    def visit_FuncCall(self, _ancestors: Any, node: Any) -> None:
        self.picks |= name_of(node) in _PICKING
        self.adds |= name_of(node) in _ADDING and id(node) not in self._shown
