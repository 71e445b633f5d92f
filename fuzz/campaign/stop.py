"""Every way in which a campaign ends."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from fuzz.campaign.counters import Counters

INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a campaign goes; None: no limit. The number of cases is the schedule's affair."""

    seconds: float | None = None
    at_first: bool = False

    def reached(self, counters: Counters, findings: int) -> str | None:
        """Return why the campaign ends now, or None."""
        if self.at_first and findings:
            return "first finding"
        if self.seconds is not None and counters.seconds >= self.seconds:
            return "time is up"
        return None


class Interrupt:
    """Whether the user asked to end: once, finish what is running; twice, at once (KeyboardInterrupt)."""

    def __init__(self) -> None:
        self._asked = threading.Event()

    def __bool__(self) -> bool:
        return self._asked.is_set()

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        """Serve as a signal handler."""
        if self._asked.is_set():
            raise KeyboardInterrupt
        self._asked.set()


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Turn SIGINT and SIGTERM into an Interrupt, for as long as the block runs."""
    interrupt = Interrupt()
    numbers = (signal.SIGINT, signal.SIGTERM)
    former = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield interrupt
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
