"""CPU times of planning and execution, from messages of the server.

EXPLAIN reports elapsed time, which includes waits for other processes of the machine.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from oracles.explain.nodes import EXECUTOR_CPU, PLANNER_CPU

# Settings of sessions that plan. The server sends one message per planned query, so the last one belongs to the
# explained query.
OF_PLANNING: Final[Mapping[str, str]] = MappingProxyType({"log_planner_stats": "on", "client_min_messages": "log"})
# Settings of sessions that execute. The message is the probe's, because log_executor_stats omits parallel workers.
OF_EXECUTION: Final[Mapping[str, str]] = MappingProxyType({"pgduel_probe.cost": "on"})

_PLANNING = re.compile(r"PLANNER STATISTICS\b.*?([0-9.]+) s user, ([0-9.]+) s system", re.DOTALL)
_EXECUTION = re.compile(r"pgduel_probe: executor used ([0-9.]+) ms of CPU time")


def cpu_time(message: str) -> tuple[str, float] | None:
    """Return name and milliseconds of the CPU time in a message with its detail, or None for other messages."""
    if planned := _PLANNING.match(message):
        return PLANNER_CPU, 1000 * (float(planned[1]) + float(planned[2]))
    executed = _EXECUTION.match(message)
    return (EXECUTOR_CPU, float(executed[1])) if executed else None
