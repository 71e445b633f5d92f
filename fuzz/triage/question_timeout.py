"""The timeout of an interestingness test: a smaller case that runs much longer than the whole one is no better.

Without statistics, an index or a condition, a join that was fast may take minutes under some plan.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

FACTOR = 2.0  # of what the whole case took
LEAST = 1.0  # seconds on top: on a busy machine, anything may take that long


class QuestionTimeout:
    """Tells whoever executes, in `passed`, when to give up on the question under way."""

    def __init__(self) -> None:
        self._whole = 0.0  # seconds that the whole case took
        self._until = float("inf")

    def passed(self) -> bool:
        """Tell whether the question took too long."""
        return time.monotonic() > self._until

    @contextmanager
    def question(self, *, whole: bool) -> Iterator[None]:
        """Ask a question within; those about the whole case take as long as they like."""
        began = time.monotonic()
        self._until = float("inf") if whole else began + LEAST + FACTOR * self._whole
        try:
            yield
        finally:
            self._until = float("inf")
        if whole:
            self._whole = max(self._whole, time.monotonic() - began)
