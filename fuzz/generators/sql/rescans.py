"""Forms of a query that is executed once for each row of a small relation `o (x)`, the driver."""

import random

from fuzz.generators.choices import pick
from fuzz.generators.sql.digest import DIGEST


def digests(sql: str, driver: str) -> str:
    """Return executions to the last row."""
    return f"SELECT o.x, (SELECT {DIGEST} FROM ({sql}) AS q) FROM {driver}"


def existence(rng: random.Random, sql: str, driver: str) -> str:
    """Return executions that end at an early row."""
    return f"SELECT o.x, EXISTS ({sql} OFFSET {pick(rng, (0, 1, 5))}) FROM {driver}"
