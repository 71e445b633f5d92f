"""Foreign tables of file_fdw whose rows are the output of a program, or an empty file.

Only superusers may create them.
"""

from typing import Final

SERVER: Final = "duel_files"
EMPTY: Final = "filename '/dev/null'"
PROLOGUE: Final = (
    "CREATE EXTENSION IF NOT EXISTS file_fdw",
    f"CREATE SERVER IF NOT EXISTS {SERVER} FOREIGN DATA WRAPPER file_fdw",
)


def file_table(name: str, shape: str, *options: str) -> str:
    """Return the CREATE FOREIGN TABLE statement, to run after the prologue.

    `shape` is a list of columns, or a clause PARTITION OF or INHERITS.
    """
    return f"CREATE FOREIGN TABLE {name} {shape} SERVER {SERVER} OPTIONS ({', '.join(options)})"
