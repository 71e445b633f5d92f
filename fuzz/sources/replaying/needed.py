"""Needed: what of earlier statements has to run so that later ones find what they refer to."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from pglast import ast

from fuzz.sources.replaying.facts import changed_by, dropped_by, facts_of

# What others rest on without naming it.
_ALWAYS: Final = (ast.CreateExtensionStmt, ast.CreateCastStmt, ast.CreateSchemaStmt)


def needed(earlier: Sequence[Any], later: Iterable[Any]) -> tuple[int, ...]:
    """Return the positions of those of the earlier syntax trees that the later ones need, in order.

    Going back from the last, a statement is needed if it makes or changes something that is named after it. What is
    dropped is not what is named later.
    """
    wanted = set().union(*(facts_of(tree).uses | changed_by(tree) | _inherited(tree) for tree in later))
    found = []
    for position in reversed(range(len(earlier))):
        tree = earlier[position]
        wanted -= dropped_by(tree)
        if isinstance(tree, _ALWAYS) or not wanted.isdisjoint(changed_by(tree)):
            found.append(position)
            wanted |= facts_of(tree).uses
    return tuple(reversed(found))


def _inherited(tree: Any) -> set[str]:
    return {relation.relname for relation in getattr(tree, "inhRelations", None) or ()}
