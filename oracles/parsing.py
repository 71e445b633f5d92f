"""Trees of statements, parsed once for all who only read them."""

from functools import lru_cache
from typing import Any, Final

from pglast import parse_sql
from pglast.parser import ParseError

KEPT: Final = 256  # those of a case, so that all oracles find them; a tree takes up to megabytes


@lru_cache(KEPT)
def trees(sql: str) -> tuple[Any, ...]:
    """Return the trees of the statements in a text; none where it cannot be parsed.

    They are shared: who changes a tree has to parse one for itself.
    """
    try:
        return tuple(parse_sql(sql))
    except ParseError:
        return ()
