"""Views of the case: relations and functions whose behaviour a query's text does not show.

A view may apply LIMIT without an order, or call a volatile function. A function may have the name of a known one. The
server does not check constraints of a foreign table, so the planner may rely on conditions that the rows violate.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

from pglast.enums import ConstrType, ObjectType

from oracles.model.case import Step
from oracles.sql.building import trees
from oracles.sql.determinism import is_deterministic, name_of
from oracles.sql.reading import Reader

CACHED: Final = 4096  # statements
_MAKING: Final = ("VIEW", "FUNCTION", "FOREIGN TABLE")
_BELIEVED: Final = frozenset({ConstrType.CONSTR_CHECK, ConstrType.CONSTR_NOTNULL})


def opaque_names(steps: Iterable[Step]) -> frozenset[str]:
    """Return the names of created views that may be nondeterministic, functions, and foreign tables with constraints.

    A view that uses one of these is among them.
    """
    found: set[str] = set()
    for name, used in _all_made(steps):
        if used is None or not found.isdisjoint(used):
            found.add(name)
    return frozenset(found)


def created_names(steps: Iterable[Step]) -> frozenset[str]:
    """Return the names of all created views and functions, and of foreign tables with constraints."""
    return frozenset(name for name, _ in _all_made(steps))


@lru_cache(CACHED)
def used_names(sql: str) -> frozenset[str]:
    """Return the names of relations that a statement reads and of functions that it calls."""
    return _used(trees(sql))


def _all_made(steps: Iterable[Step]) -> Iterator[tuple[str, frozenset[str] | None]]:
    """Yield the results of `_made` for all steps; only steps with a keyword in question are parsed."""
    for step in steps:
        if any(word in step.sql.upper() for word in _MAKING):
            yield from _made(step.sql)


@lru_cache(CACHED)
def _made(sql: str) -> tuple[tuple[str, frozenset[str] | None], ...]:
    """Return the created views, functions and foreign tables with constraints, each with the names that it uses.

    None instead of the names if the view may be nondeterministic, and for functions and foreign tables.
    """
    made = _Made()
    made(trees(sql))
    return tuple(made.found)


def _used(tree: Any) -> frozenset[str]:
    used = _Used()
    used(tree)
    return frozenset(used.names)


class _Made(Reader):
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


class _Constraints(Reader):
    def __init__(self, tree: Any) -> None:
        super().__init__()
        self.types: set[ConstrType] = set()
        self(tree)

    def visit_Constraint(self, _ancestors: Any, node: Any) -> None:
        self.types.add(node.contype)


class _Used(Reader):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def visit_RangeVar(self, _ancestors: Any, node: Any) -> None:
        self.names.add(node.relname)

    def visit_FuncCall(self, _ancestors: Any, node: Any) -> None:
        self.names.add(name_of(node))
