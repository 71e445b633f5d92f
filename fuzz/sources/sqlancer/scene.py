"""Scenes from SQLancer's statements, without nondeterministic ones."""

from collections.abc import Iterable
from typing import Any, Final

import pglast
from pglast import ast

from fuzz.sources.determinism.catalog import Catalog
from fuzz.sources.scripts.facts import facts_of
from fuzz.sources.scripts.psql import Sent
from fuzz.sources.scripts.steps import Stager
from oracles.model.case import Step

_MAINTAINS: Final = (ast.ClusterStmt, ast.ReindexStmt, ast.VacuumStmt)


def scene_of(statements: Iterable[str], catalog: Catalog) -> tuple[Step, ...]:
    """Return the statements that create a database, as steps. Any may fail, and many do."""
    stager = Stager(catalog, lambda _: None)
    lasting = (Sent(sql, None, 0) for sql in statements if not depends_on_chance(sql, catalog))
    return tuple(step for sent in lasting if (step := stager.step(sent)) is not None)


def depends_on_chance(sql: str, catalog: Catalog) -> bool:
    """Return whether a statement calls a nondeterministic function, or prints times and counts (VERBOSE)."""
    try:
        trees = pglast.parse_sql(sql)
    except pglast.parser.ParseError:
        return False
    calls = {call for tree in trees for call in facts_of(tree.stmt).calls}
    return any(catalog.unfit(call.name, call.arguments) for call in calls) or any(
        _prints_figures(tree.stmt) for tree in trees
    )


def _prints_figures(tree: Any) -> bool:
    """Return whether a statement prints its duration and other figures."""
    options = getattr(tree, "options", None) or getattr(tree, "params", None) or ()
    return isinstance(tree, _MAINTAINS) and any(option.defname == "verbose" for option in options)
