"""What SQLancer did to make a database, as a scene: without what would not do the same each time."""

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
    """Return the statements that make a database, as steps; any may fail, as many do."""
    stager = Stager(catalog, lambda _: None)
    lasting = (Sent(sql, None, 0) for sql in statements if not depends_on_chance(sql, catalog))
    return tuple(step for sent in lasting if (step := stager.step(sent)) is not None)


def depends_on_chance(sql: str, catalog: Catalog) -> bool:
    """Tell whether a statement calls what returns something else each time, and so what it stores; or says that."""
    try:
        trees = pglast.parse_sql(sql)
    except pglast.parser.ParseError:
        return False
    calls = {call for tree in trees for call in facts_of(tree.stmt).calls}
    return any(catalog.unfit(call.name, call.arguments) for call in calls) or any(_tells(tree.stmt) for tree in trees)


def _tells(tree: Any) -> bool:
    """Tell whether a statement says how long it took, and what it met."""
    options = getattr(tree, "options", None) or getattr(tree, "params", None) or ()
    return isinstance(tree, _MAINTAINS) and any(option.defname == "verbose" for option in options)
