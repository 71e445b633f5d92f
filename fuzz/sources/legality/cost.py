"""Cost: whether a statement is quick enough to be worth a case's time, by the planner's estimate.

An estimate is the same on every machine; a time is not, and what takes longer than statement_timeout proves nothing.
"""

from typing import Any, Final

import psycopg

MOST_COST: Final = 500_000  # some seconds on a server with assertions
MOST_ROWS: Final = 20_000


def is_quick(connection: psycopg.Connection[Any], sql: str) -> bool:
    """Tell what the planner expects; what it refuses takes no time. Raises psycopg.OperationalError."""
    try:
        row = connection.execute(f"EXPLAIN (FORMAT JSON) {sql}".encode()).fetchone()
    except psycopg.Error:
        if connection.broken:
            raise
        return True
    assert row is not None
    plan = row[0][0]["Plan"]
    return bool(plan["Total Cost"] <= MOST_COST and plan["Plan Rows"] <= MOST_ROWS)
