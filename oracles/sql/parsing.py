"""Trees of statements: parsed once for all who only read them, anew for who changes one."""

from functools import lru_cache
from typing import Any, Final

from pglast import ast, parse_sql
from pglast.parser import ParseError

KEPT: Final = 256  # those of a case, so that all oracles find them; a tree takes up to megabytes


@lru_cache(KEPT)
def trees(sql: str) -> tuple[Any, ...]:
    """Return the trees of the statements in a text; none where it cannot be parsed.

    They are shared: who changes one takes a fresh one.
    """
    try:
        return tuple(parse_sql(sql))
    except ParseError:
        return ()


def fresh_select(sql: str) -> Any:
    """Return a tree of the text that nobody else has, if it is a single SELECT, else None."""
    known = trees(sql)
    is_select = len(known) == 1 and isinstance(known[0].stmt, ast.SelectStmt)
    return parse_sql(sql)[0].stmt if is_select else None
