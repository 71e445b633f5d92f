"""Syntax trees of statements: their parts with paths, and the text of a statement with a changed part.

A part's path is the list of attributes and positions that lead to it from the top. Trees are never modified; trees that
differ in a part share the others. A text that cannot be parsed (another version's syntax, several statements) has none.
"""

from collections.abc import Iterator
from copy import copy
from functools import lru_cache
from typing import Any

from pglast import ast

from oracles.sql.building import sql_of, statement_of

Path = tuple[str | int, ...]
# Errors of printer and nodes for trees of shapes that no parser creates.
_UNPRINTABLE = (AttributeError, IndexError, KeyError, NotImplementedError, TypeError, ValueError, RecursionError)


@lru_cache(maxsize=1024)
def tree_of(sql: str) -> Any:
    """Return the tree of a statement; None if it has none."""
    return statement_of(sql)


def changed(sql: str, path: Path, part: Any) -> str | None:
    """Return a statement with another part at the path; None if that is no valid statement."""
    return text_of(_with(tree_of(sql), path, part))


def text_of(tree: Any) -> str | None:
    """Return a tree as SQL; None if parsing that would not return the same tree."""
    try:
        sql = sql_of(tree)
    except _UNPRINTABLE:
        return None
    return sql if tree_of(sql) == tree else None


def _with(whole: Any, path: Path, part: Any) -> Any:
    if not path:
        return part
    first, *rest = path
    other = _with(part_at(whole, (first,)), tuple(rest), part)
    if isinstance(first, str):
        return altered(whole, **{first: other})
    return (*whole[:first], other, *whole[first + 1 :])


def altered(node: Any, /, **attributes: Any) -> Any:
    """Return a copy of a node with other attributes."""
    other = copy(node)
    for name, value in attributes.items():
        setattr(other, name, value)
    return other


def constant(value: ast.Node) -> ast.Node:
    """Return a literal."""
    return ast.A_Const(isnull=False, val=value)


def part_at(tree: Any, path: Path) -> Any:
    """Return the part at the path."""
    for step in path:
        tree = getattr(tree, step) if isinstance(step, str) else tree[step]
    return tree


@lru_cache(maxsize=256)
def parts_of(sql: str) -> tuple[tuple[Path, Any], ...]:
    """Return all nodes and lists of a statement's tree with their paths; empty if it has no tree."""
    tree = tree_of(sql)
    return () if tree is None else tuple(_parts(tree))


def _parts(tree: Any) -> Iterator[tuple[Path, Any]]:
    """Yield all nodes and lists with their paths, level by level, so that large parts come first."""
    level: list[tuple[Path, Any]] = [((), tree)]
    while level:
        yield from level
        level = [((*path, step), part) for path, whole in level for step, part in within(whole)]


def nodes(tree: Any) -> Iterator[Any]:
    """Return all nodes of a tree, level by level."""
    return (part for _, part in _parts(tree) if isinstance(part, ast.Node))


def within(whole: Any) -> Iterator[tuple[str | int, Any]]:
    """Return the nodes and lists directly in a node or list."""
    found = enumerate(whole) if isinstance(whole, tuple) else ((name, getattr(whole, name)) for name in whole)
    return ((step, part) for step, part in found if isinstance(part, ast.Node | tuple))
