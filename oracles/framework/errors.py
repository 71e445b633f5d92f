"""Errors that no part of a query can raise, and that are therefore faults.

An error is legal if a value, a limit of a resource, a setting or the session may cause it. The query's syntax tree
excludes values (oracles/sql/infallible.py), and the SQLSTATE's class the rest. The classes of syntax errors and of
features that are not supported are legal, too: a rewritten query may have a form that PostgreSQL does not support.
"""

from collections.abc import Sequence
from typing import Final

from oracles.model.case import Step
from oracles.model.observation import Message, Observation, Outcome
from oracles.sql.infallible import is_infallible

# Connection, feature not supported, transaction state, rollback, syntax or access rule, resources, limits, object
# state, operator intervention, system error, configuration, foreign data, and internal errors, which `internal_error`
# judges (src/backend/utils/errcodes.txt).
_LEGAL: Final = frozenset({"08", "0A", "25", "40", "42", "53", "54", "55", "57", "58", "F0", "HV", "XX"})


def impossible_error(steps: Sequence[Step], sql: str, seen: Observation) -> Message | None:
    """Return the error of a query of the case if nothing in the query can legally raise it, else None."""
    if seen.outcome is not Outcome.ERROR or seen.sqlstate[:2] in _LEGAL or not is_infallible(sql, steps):
        return None
    return next((message for message in seen.messages if message.sqlstate == seen.sqlstate), None)


def origin_of(error: Message) -> str:
    """Return the identity of the error's cause: its SQLSTATE and the C function that raised it."""
    return f"{error.sqlstate} in {error.routine or 'an unnamed function'}, which nothing in the query can raise"


def raised(seen: Observation) -> str:
    """Return the errors of a step as text, one per line."""
    errors = (each for each in seen.messages if each.severity == "ERROR")
    return "\n".join(f"{each.severity}: {each.sqlstate}: {each.text}" for each in errors)
