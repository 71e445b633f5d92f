"""Own views: which names hide what a query's text does not tell, as the case itself says what is behind them.

A view may cut rows in no order, or call what is volatile; a function may have the name of a known one.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

from pglast.visitors import Visitor

from oracles.case import Step
from oracles.determinism import is_deterministic, name_of
from oracles.parsing import trees

CACHED: Final = 4096  # statements
_MAKING: Final = ("VIEW", "FUNCTION")


def hiding(steps: Iterable[Step]) -> frozenset[str]:
    """Return the names of views not known to return the same each time, and of functions, that these steps make."""
    found: set[str] = set()
    for name, used in _all_made(steps):
        if used is None or not found.isdisjoint(used):
            found.add(name)
    return frozenset(found)


def made_by(steps: Iterable[Step]) -> frozenset[str]:
    """Return the names of all views and functions that these steps make."""
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
    """Return the views and functions that a statement makes, with what they use; None where it is not all known."""
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


class _Used(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def visit_RangeVar(self, _ancestors: Any, node: Any) -> None:
        self.names.add(node.relname)

    def visit_FuncCall(self, _ancestors: Any, node: Any) -> None:
        self.names.add(name_of(node))
