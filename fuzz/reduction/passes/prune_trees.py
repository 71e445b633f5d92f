"""Cut the syntax tree of each statement: hierarchical delta debugging (Misherghi and Su, ICSE 2006).

Level by level, so that the largest parts go first, and what uses something before what makes it: a node becomes one of
its own parts or a constant, lists are shortened, and what is optional is left out. Nothing is known of what the SQL
means but which columns belong together; what makes no sense is not interesting.
"""

from functools import partial
from typing import Any, Final

from pglast import ast

from fuzz.reduction.deltas import shortest, shortest_in_parts
from fuzz.reduction.problem import Problem
from fuzz.reduction.query_columns import Counted, columns_at
from fuzz.reduction.simpler import arguments_at, lessened, replacements
from fuzz.reduction.statement import Statement, statements
from fuzz.reduction.trees import Path
from oracles.case import Kind

# Lists that are names, or whose items cannot go without others: what they belong to sees to them.
_LEFT: Final = frozenset(
    {"aliascolnames", "aliases", "colnames", "cols", "fields", "funcname", "name", "names", "valuesLists"}
)


def prune_queries(problem: Problem) -> None:
    """Cut the queries: what they do not use of the scene can go then."""
    for statement in statements(problem, Kind.QUERY):
        _prune(statement)


def prune_commands(problem: Problem) -> None:
    """Cut all other statements."""
    for statement in statements(problem, Kind.COMMAND, Kind.COPY_IN, Kind.COPY_OUT):
        _prune(statement)


def _prune(statement: Statement) -> None:
    """Go through all parts once. What a node became is looked at again; nothing before it has changed."""
    done = 0
    while done < len(found := statement.parts):
        path, part = found[done]
        before = statement.sql
        if isinstance(part, ast.Node):
            _cut(statement, path, part)
            done += statement.sql == before
        else:
            _shorten(statement, path, part)
            done += 1


def _shorten(statement: Statement, path: Path, items: tuple[Any, ...]) -> None:
    shown = isinstance(statement.above(path), ast.SelectStmt) and path[-1] == "targetList"
    if isinstance(path[-1], str) and path[-1] not in _LEFT and not shown:
        shortest_in_parts(items, lambda kept: kept == items or statement.is_interesting(path, kept or None))


def _cut(statement: Statement, path: Path, node: Any) -> None:
    above = statement.above(path)
    if any(statement.is_better(path, other) for other in replacements(node, above)):
        return
    before = statement.sql
    if counted := columns_at(node, above) or arguments_at(node):
        shortest(range(counted.count), partial(_still, statement, path, counted))
    if statement.sql == before:
        any(statement.is_better(path, other) for other in lessened(node))


def _still(statement: Statement, path: Path, counted: Counted, kept: tuple[int, ...]) -> bool:
    """Tell whether it still does with these items only. One is kept: a query of no columns is no help."""
    whole = len(kept) == counted.count
    return whole or (bool(kept) and statement.is_interesting(path, counted.with_only(kept)))
