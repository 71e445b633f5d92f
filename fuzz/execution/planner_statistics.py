"""PLANNER STATISTICS: the processor time that planning took, as log_planner_stats has the server tell its client.

The time on the clock, which EXPLAIN tells, also says how often the process had to wait for others on the machine.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# What a session needs. The server tells it for each query planned, and once a query is planned, so last for EXPLAIN's.
SETTINGS: Final[Mapping[str, str]] = MappingProxyType({"log_planner_stats": "on", "client_min_messages": "log"})

_TIMES = re.compile(r"PLANNER STATISTICS\b.*?([0-9.]+) s user, ([0-9.]+) s system", re.DOTALL)


def planner_cpu(message: str) -> float | None:
    """Return the milliseconds of user and system time in a message with its detail; None if it is another message."""
    found = _TIMES.match(message)
    return 1000 * (float(found[1]) + float(found[2])) if found else None
