"""Digest of rows: their number and the sum of their hashes, in whatever order they come."""

from typing import Final

_COLUMNS: Final = "count(*), sum(hashtextextended(q::text, 0))"
DIGEST: Final = f"({_COLUMNS})::text"  # of the rows q, as one value


def digest(rows: str) -> str:
    """Return a query of one row for the rows of another one."""
    return f"SELECT {_COLUMNS} FROM ({rows}) AS q"
