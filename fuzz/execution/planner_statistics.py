"""CPU time of planning, from the PLANNER STATISTICS messages of log_planner_stats.

EXPLAIN reports elapsed time, which includes waits for other processes of the machine.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# Settings of the session. The server sends one message per planned query, so the last one belongs to the explained
# query.
SETTINGS: Final[Mapping[str, str]] = MappingProxyType({"log_planner_stats": "on", "client_min_messages": "log"})

_TIMES = re.compile(r"PLANNER STATISTICS\b.*?([0-9.]+) s user, ([0-9.]+) s system", re.DOTALL)


def planner_cpu(message: str) -> float | None:
    """Return the milliseconds of user and system time in a message with its detail, or None for other messages."""
    found = _TIMES.match(message)
    return 1000 * (float(found[1]) + float(found[2])) if found else None
