"""Syntax trees of statements: shared ones for readers, and new ones for functions that change them."""

from functools import lru_cache
from typing import Any, Final

from pglast import ast, parse_sql
from pglast.parser import ParseError, fingerprint

KEPT: Final = 256  # the statements of a case, for all oracles; a tree may need megabytes


@lru_cache(KEPT)
def trees(sql: str) -> tuple[Any, ...]:
    """Return the trees of the statements in a text; an empty tuple if it cannot be parsed.

    The trees are shared. A caller that changes one must parse a new one (`fresh_select`).
    """
    try:
        return tuple(parse_sql(sql))
    except ParseError:
        return ()


def fresh_select(sql: str) -> Any:
    """Return a new tree of the text if it is a single SELECT, else None."""
    known = trees(sql)
    is_select = len(known) == 1 and isinstance(known[0].stmt, ast.SelectStmt)
    return parse_sql(sql)[0].stmt if is_select else None


@lru_cache(KEPT)
def fingerprint_of(sql: str) -> str | None:
    """Return libpg_query's fingerprint, which literals do not change, or None if the text is not one statement."""
    return fingerprint(sql) if len(trees(sql)) == 1 else None
