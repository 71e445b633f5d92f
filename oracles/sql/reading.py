"""Readers of syntax trees: visitors that replace no nodes. They are several times faster than those of pglast.

A reader calls the same methods as `pglast.visitors.Visitor`, in the same order. It ignores results other than `Skip`.
A method may change attributes of its node. The nodes below are read afterwards.
"""

from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from pglast import ast
from pglast.visitors import Ancestor, Skip


class Reader:
    """A visitor that reads the nodes of a tree, level by level."""

    def __call__(self, tree: Any) -> None:
        """Call `visit_X` for each node of class X, or `visit` if there is none. Nodes below a skipped one are left out.

        The tree is a node, or a tuple of nodes and tuples.
        """
        reader: Any = type(self)
        kinds = _kinds(reader)
        waiting = deque(((Ancestor(), tree),))
        while waiting:
            above, part = waiting.popleft()
            is_list = isinstance(part, tuple)
            for index, each in enumerate(part if is_list else (part,)):
                method, links = kinds[type(each)]
                if method is None and not links and not isinstance(each, tuple):
                    continue
                place = Ancestor(above, part, index) if is_list else above
                if isinstance(each, tuple):
                    waiting.extend((Ancestor(place, each, inner), within) for inner, within in enumerate(each))
                elif method is None or method(self, place, each) is not Skip:
                    for name in links:
                        value = getattr(each, name)
                        if value is not None:
                            waiting.append((Ancestor(place, each, name), value))

    def visit(self, ancestors: Any, node: Any) -> Any:
        """Read a node that has no method of its own."""


class _Kind(NamedTuple):
    """A class of nodes: its method in a class of readers, and the attributes to read."""

    method: Callable[..., Any] | None
    links: tuple[str, ...]  # the attributes that may have nodes


class _Kinds(dict[type, _Kind]):
    """The kinds of nodes of a class of readers."""

    def __init__(self, reader: type[Reader]) -> None:
        super().__init__()
        self._reader = reader

    def __missing__(self, node: Any) -> _Kind:
        default = None if self._reader.visit is Reader.visit else self._reader.visit
        is_node = issubclass(node, ast.Node)
        method = getattr(self._reader, f"visit_{node.__name__}", default) if is_node else None
        links = tuple(name for name, info in node.__slots__.items() if _has_nodes(info.py_type)) if is_node else ()
        self[node] = _Kind(method, links)
        return self[node]


_kinds = cache(_Kinds)


def _has_nodes(types: Any) -> bool:
    """Return whether an attribute of these types may have nodes."""
    return any(issubclass(each, (tuple, ast.Node)) for each in (types if isinstance(types, tuple) else (types,)))


def deeper_than(tree: Any, levels: int) -> bool:
    """Return whether a tree, which is a node or a tuple, has more levels of nodes."""
    kinds = _kinds(Reader)
    level = _nodes((tree,))
    for _ in range(levels):
        level = _nodes(tuple(getattr(node, name) for node in level for name in kinds[type(node)].links))
        if not level:
            return False
    return True


def _nodes(values: tuple[Any, ...]) -> list[Any]:
    """Return the nodes among values, and in tuples of these."""
    found: list[Any] = []
    waiting = [*values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, tuple):
            waiting.extend(value)
        elif isinstance(value, ast.Node):
            found.append(value)
    return found
