"""The URL of a shared store, which may have a password. Standard library only, because set-up uses it.

Programs inherit variables, and code of patches may read its own. So each process of pgduel removes the URL from its
variables before it starts another program, and passes it on to those of its processes that need it.
"""

import os
from typing import Final

VARIABLE: Final = "PGDUEL_STORE"
_kept = ""


def hide() -> None:
    """Move the URL from the variables of this process to its memory."""
    keep(os.environ.pop(VARIABLE, ""))


def keep(url: str) -> None:
    """Use this URL in this process unless its variables have one; "" for none."""
    global _kept
    _kept = url


def store_url() -> str:
    """Return the URL, or "" for stores in files."""
    return os.environ.get(VARIABLE) or _kept


def variables() -> dict[str, str]:
    """Return the variable for a process that needs the store, if there is one."""
    return {VARIABLE: url} if (url := store_url()) else {}
