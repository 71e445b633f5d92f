"""Actions after a limit of time, repeated until a context ends, since what they end may have started something else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

_PAUSE: Final = 5.0  # seconds between two actions


@contextmanager
def repeated_after(seconds: float, action: Callable[[], None]) -> Iterator[None]:
    """Call `action` after `seconds`, and again until this context ends."""
    ended = Event()
    watching = Thread(target=_watch, args=(seconds, action, ended), daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()


def _watch(seconds: float, action: Callable[[], None], ended: Event) -> None:
    while not ended.wait(seconds):
        action()
        seconds = _PAUSE


@contextmanager
def ended_after(seconds: float, end: Callable[[], None]) -> Iterator[Event]:
    """Do the same, and yield an event that is set at the first call."""
    over = Event()

    def action() -> None:
        over.set()
        end()

    with repeated_after(seconds, action):
        yield over
