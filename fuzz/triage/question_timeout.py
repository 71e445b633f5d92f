"""Timeout of an interestingness test: a smaller case that takes much longer than the whole one is rejected.

Without statistics, an index or a condition, a fast join may take minutes under some plans.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

FACTOR = 2.0  # of the time of the whole case
LEAST = 1.0  # additional seconds, because anything may take that long on a busy machine


class QuestionTimeout:
    """Timeout of a sequence of tests, relative to the time of the whole case. Executors call `passed`."""

    def __init__(self) -> None:
        self._whole = 0.0  # seconds of the slowest test of the whole case
        self._until = float("inf")

    def passed(self) -> bool:
        """Return whether the current test has reached its timeout."""
        return time.monotonic() > self._until

    @contextmanager
    def applied(self, *, whole: bool) -> Iterator[None]:
        """Apply the timeout to the test in this context; tests of the whole case have none."""
        began = time.monotonic()
        self._until = float("inf") if whole else began + LEAST + FACTOR * self._whole
        try:
            yield
        finally:
            self._until = float("inf")
        if whole:
            self._whole = max(self._whole, time.monotonic() - began)
