"""A loop that runs exchanges with several servers concurrently, so that all arms work at the same time."""

import select
import time
from collections.abc import Callable, Generator, Sequence
from typing import Final, TypeVar

from fuzz.execution.wire import Wire

T = TypeVar("T")

Exchange = Generator[Wire | float, None, T]
"""A coroutine that exchanges messages with one server. It yields a Wire to wait for, or seconds to pause."""

# maximum seconds between two calls of `stop` while no server sends data
_STOP_POLL_SECONDS: Final = 0.2


class Abandoned(Exception):
    """Raised if exchanges were cancelled, so that there is no result."""


def never() -> bool:
    """Return False: never stop."""
    return False


class _Turn:
    """An exchange, and the event that it waits for."""

    def __init__(self, exchange: "Exchange[T]", slot: int) -> None:
        self.exchange = exchange
        self.slot = slot
        self.wire: Wire | None = None
        self.until = 0.0  # latest time to resume

    def ready(self, now: float) -> bool:
        return now >= self.until or (self.wire is not None and self.wire.settled)


def run_exchanges(
    exchanges: "Sequence[Exchange[T]]", limit_seconds: float, stop: Callable[[], bool] = never
) -> list[T]:
    """Run exchanges concurrently, and return their results in the given order.

    If a server completes no reply for `limit_seconds`, its exchange resumes with an unsettled Wire, even if the server
    sends rows or messages all the time. Soon after `stop` returns true, the exchanges are closed. Raises Abandoned.
    """
    results: dict[int, T] = {}
    turns = [_Turn(exchange, slot) for slot, exchange in enumerate(exchanges)]
    try:
        while turns:
            if stop():
                raise Abandoned
            now = time.monotonic()
            turns = [turn for turn in turns if not turn.ready(now) or _resume(turn, results, limit_seconds)]
            _wait(turns, limit_seconds)
    finally:
        for exchange in exchanges:
            exchange.close()
    return [results[slot] for slot in range(len(exchanges))]


def _resume(turn: _Turn, results: dict[int, T], limit_seconds: float) -> bool:
    """Resume an exchange until it has to wait, and return whether it continues."""
    while True:
        try:
            waited_for = next(turn.exchange)
        except StopIteration as stop:
            results[turn.slot] = stop.value
            return False
        turn.wire = waited_for if isinstance(waited_for, Wire) else None
        if turn.wire is None:
            turn.until = time.monotonic() + float(waited_for)  # type: ignore[arg-type]
            return True
        turn.wire.pump_out()
        if not turn.wire.settled:
            turn.until = time.monotonic() + limit_seconds
            return True


def _wait(turns: Sequence[_Turn], limit_seconds: float) -> None:
    """Transfer bytes on ready sockets. Return after one was ready, at a deadline, or when `stop` is due."""
    if not turns:
        return
    wires = {turn.wire.fileno(): turn for turn in turns if turn.wire is not None}
    writers = [turn.wire for turn in turns if turn.wire is not None and turn.wire.wants_out]
    timeout = min(_STOP_POLL_SECONDS, max(0.0, min(turn.until for turn in turns) - time.monotonic()))
    readable, writable, _ = select.select(list(wires), writers, (), timeout)
    for wire in writable:
        wire.pump_out()
    for descriptor in readable:
        turn = wires[descriptor]
        assert turn.wire is not None
        answered = len(turn.wire.replies)
        turn.wire.pump_in()
        if len(turn.wire.replies) > answered:
            turn.until = time.monotonic() + limit_seconds
