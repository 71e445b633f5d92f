"""Limits of a campaign, and interrupts, which end it, too."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from types import FrameType

from fuzz.campaign.counters import Counters

INTERRUPTED = "interrupted"
REDUCING = 900.0  # seconds of the reductions after the last case of a run that another one follows
REDUCTIONS = 10  # limit of reduced findings: more of them have few causes, and new cases are a better use of the time


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a campaign; None and inf: no limit. The schedule limits the number of cases."""

    seconds: float | None = None
    cpu_seconds: float | None = None  # of pgduel and the servers
    at_first: bool = False
    reductions: int = REDUCTIONS
    reducing: float = inf  # seconds after the last case, in which its jobs and reductions have to end

    def reached(self, counters: Counters, findings: int) -> str | None:
        """Return the reason why the campaign ends now, or None."""
        if self.at_first and findings:
            return "first finding"
        if self.seconds is not None and counters.seconds >= self.seconds:
            return "time is up"
        if self.cpu_seconds is not None and counters.cpu_seconds >= self.cpu_seconds:
            return "CPU time is up"
        return None


class Interrupt:
    """Handler of signals by which the user ends a campaign: the first lets running jobs end, the second kills them.

    It is true after the first signal. The second raises KeyboardInterrupt.
    """

    def __init__(self) -> None:
        self._asked = threading.Event()

    def __bool__(self) -> bool:
        return self._asked.is_set()

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        if self._asked.is_set():
            raise KeyboardInterrupt
        self._asked.set()


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Turn SIGINT and SIGTERM into an Interrupt in this context."""
    interrupt = Interrupt()
    numbers = (signal.SIGINT, signal.SIGTERM)
    former = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield interrupt
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
