"""Costs of planning and execution, from messages of the server.

EXPLAIN reports elapsed time, which includes waits for other processes of the machine, and no memory of the executor.
Neither does it report the width of single tuples, nor how long an interrupt was pending.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from oracles.explain.nodes import (
    CANCEL_DELAY,
    EXECUTOR_CPU,
    EXECUTOR_MEMORY,
    PLANNER_CPU,
    UNINTERRUPTED,
    WIDEST_HASH_TUPLE,
)

# Settings of sessions that plan. The server sends one message per planned query, so the last one belongs to the
# explained query.
OF_PLANNING: Final[Mapping[str, str]] = MappingProxyType({"log_planner_stats": "on", "client_min_messages": "log"})
# Settings of sessions that execute. The message is the probe's, because log_executor_stats omits parallel workers.
OF_EXECUTION: Final[Mapping[str, str]] = MappingProxyType({"pgduel_probe.cost": "on"})

_PLANNING = re.compile(r"PLANNER STATISTICS\b.*?([0-9.]+) s user, ([0-9.]+) s system", re.DOTALL)
_EXECUTION = re.compile(
    r"pgduel_probe: executor used ([0-9.]+) ms of CPU time and ([0-9.]+) kB of memory,"
    r" and left interrupts pending for ([0-9.]+) ms of CPU time"
)
_COPY = re.compile(r"pgduel_probe: COPY used ([0-9.]+) kB of memory")
_EXECUTION_COSTS = (EXECUTOR_CPU, EXECUTOR_MEMORY, UNINTERRUPTED)  # in the order of the message
_CANCEL = re.compile(r"pgduel_probe: the cancel took ([0-9.]+) ms of CPU time")
_WIDEST = re.compile(r"pgduel_probe: widest tuple of hash tables has ([0-9]+) bytes")


def costs_in(message: str) -> Mapping[str, float]:
    """Return the costs in a message with its detail, by name: milliseconds or kB. Other messages have none."""
    if planned := _PLANNING.match(message):
        return {PLANNER_CPU: 1000 * (float(planned[1]) + float(planned[2]))}
    executed = _EXECUTION.match(message)
    return dict(zip(_EXECUTION_COSTS, map(float, executed.groups()), strict=True)) if executed else {}


def memory_in(messages: Iterable[str]) -> float:
    """Return the memory in the messages of a command, which may have run several statements: kB, the maximum."""
    used = [float(found[1]) for text in messages if (found := _COPY.match(text))]
    used += [costs_in(text).get(EXECUTOR_MEMORY, 0.0) for text in messages]
    return max(used, default=0.0)


def cancel_in(messages: Iterable[str]) -> Mapping[str, float]:
    """Return the longest delay of a cancel in the messages of a statement's processes, if the probe canceled it: ms."""
    delays = [float(found[1]) for text in messages if (found := _CANCEL.match(text))]
    return {CANCEL_DELAY: max(delays)} if delays else {}


def widest_in(messages: Iterable[str]) -> Mapping[str, float]:
    """Return the widest tuple of hash tables in the messages of a statement's processes, if any measured it: bytes."""
    sizes = [float(found[1]) for text in messages if (found := _WIDEST.match(text))]
    return {WIDEST_HASH_TUPLE: max(sizes)} if sizes else {}
