"""Own views: which names hide what a query's text does not tell, as the case itself says what is behind them.

A view may cut rows in no order, or call what is volatile; a function may have the name of a known one. What a foreign
table says of its rows is believed and not checked, so a condition may be taken to hold, or not to, for rows that are
otherwise.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

from pglast.enums import ConstrType, ObjectType
from pglast.visitors import Visitor

from oracles.model.case import Step
from oracles.sql.determinism import is_deterministic, name_of
from oracles.sql.parsing import trees

CACHED: Final = 4096  # statements
_MAKING: Final = ("VIEW", "FUNCTION", "FOREIGN TABLE")
_BELIEVED: Final = frozenset({ConstrType.CONSTR_CHECK, ConstrType.CONSTR_NOTNULL})


def hiding(steps: Iterable[Step]) -> frozenset[str]:
    """Return the names of views not known to return the same each time, of functions, and of foreign tables that say
    something of their rows, that these steps make.
    """
    found: set[str] = set()
    for name, used in _all_made(steps):
        if used is None or not found.isdisjoint(used):
            found.add(name)
    return frozenset(found)


def made_by(steps: Iterable[Step]) -> frozenset[str]:
    """Return the names of all views and functions that these steps make, and of foreign tables as in `hiding`."""
    return frozenset(name for name, _ in _all_made(steps))


@lru_cache(CACHED)
def used_by(sql: str) -> frozenset[str]:
    """Return the names of relations that a statement reads and of functions that it calls."""
    return _used(trees(sql))


def _all_made(steps: Iterable[Step]) -> Iterator[tuple[str, frozenset[str] | None]]:
    """Yield what steps make, as `_made` tells it; what cannot make any is not parsed."""
    for step in steps:
        if any(word in step.sql.upper() for word in _MAKING):
            yield from _made(step.sql)


@lru_cache(CACHED)
def _made(sql: str) -> tuple[tuple[str, frozenset[str] | None], ...]:
    """Return the views, functions and such foreign tables that a statement makes, with what they use; None where it is
    not all known.
    """
    made = _Made()
    made(trees(sql))
    return tuple(made.found)


def _used(tree: Any) -> frozenset[str]:
    used = _Used()
    used(tree)
    return frozenset(used.names)


class _Made(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, frozenset[str] | None]] = []

    def visit_ViewStmt(self, _ancestors: Any, node: Any) -> None:
        self.found.append((node.view.relname, _used(node.query) if is_deterministic(node.query) else None))

    def visit_CreateFunctionStmt(self, _ancestors: Any, node: Any) -> None:
        self.found.append((name_of(node), None))

    def visit_CreateForeignTableStmt(self, _ancestors: Any, node: Any) -> None:
        if _Constraints(node).types & _BELIEVED:
            self.found.append((node.base.relation.relname, None))

    def visit_AlterTableStmt(self, _ancestors: Any, node: Any) -> None:
        if node.objtype == ObjectType.OBJECT_FOREIGN_TABLE and _Constraints(node).types & _BELIEVED:
            self.found.append((node.relation.relname, None))


class _Constraints(Visitor):
    def __init__(self, tree: Any) -> None:
        super().__init__()
        self.types: set[ConstrType] = set()
        self(tree)

    def visit_Constraint(self, _ancestors: Any, node: Any) -> None:
        self.types.add(node.contype)


class _Used(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def visit_RangeVar(self, _ancestors: Any, node: Any) -> None:
        self.names.add(node.relname)

    def visit_FuncCall(self, _ancestors: Any, node: Any) -> None:
        self.names.add(name_of(node))
