"""Time limit of a build's servers, for builds that may hang anywhere: in initdb, at their start, in any query."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

from fuzz.servers.build import Build
from fuzz.servers.processes import kill_all_of

_PAUSE: Final = 5.0  # seconds between two searches for servers that were started after the limit


@contextmanager
def time_limit(build: Build, seconds: float) -> Iterator[None]:
    """Kill all servers of a build that run after `seconds`, also new ones, until this context ends.

    So whoever waits for them gets an error.
    """
    over = Event()
    watching = Thread(target=_watch, args=(build, seconds, over), daemon=True)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()


def _watch(build: Build, seconds: float, over: Event) -> None:
    while not over.wait(seconds):
        kill_all_of(build.bindir / "postgres")
        seconds = _PAUSE
