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


def program_of(*lines: str, then: str = "") -> str:
    r"""Return the option for a program that prints the lines, and then runs another command.

    No line has a quote or `$`, which the shell and SQL would interpret.
    """
    printed = "printf '%s\\n' " + " ".join(f"'{line}'" for line in lines)
    return f"program $${printed}{f'; {then}' if then else ''}$$"


def file_table(name: str, shape: str, *options: str) -> str:
    """Return the CREATE FOREIGN TABLE statement, to run after the prologue.

    `shape` is a list of columns, or a clause PARTITION OF or INHERITS.
    """
    return f"CREATE FOREIGN TABLE {name} {shape} SERVER {SERVER} OPTIONS ({', '.join(options)})"
