"""Problem: a case, a total order on cases, and a question that tells whether a smaller case still shows the finding.

The key insight: a pass only asks. Whatever it asks about, the problem remembers the smallest interesting case seen, so
a pass may be interrupted anywhere, and passes need not know of each other. The total order makes "smaller" mean the
same to all of them.
"""

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from fuzz.psql.lexer import tokens
from fuzz.reduction.series import rows_in
from fuzz.reduction.trees import parts_of
from oracles.case import Case, Step

SECONDS = 60.0  # that a campaign gives the reduction of a finding
SortKey = tuple[int, int, int, int, int, int, str]


class TimeUp(Exception):  # an end, not an error
    """The time limit has passed; the best case so far stands."""


class Problem:
    """What is being reduced. Answers are remembered, so that asking twice costs nothing and is answered alike.

    `start` is known to be interesting. What is asked about a case may take several tries, before each of which it calls
    what it is given.
    """

    def __init__(
        self,
        start: Case,
        is_interesting: Callable[[Case, Callable[[], None]], bool],
        seconds: float = float("inf"),
        on_better: Callable[[Case], Any] = lambda case: None,
    ) -> None:
        self.best = start
        self._question = is_interesting
        self._deadline = time.monotonic() + seconds
        self._on_better = on_better
        self._answers = {start: True}

    def is_interesting(self, case: Case) -> bool:
        """Ask about a case, and keep it if it is the best so far. Raises TimeUp once the time limit has passed."""
        if case not in self._answers:
            self._answers[case] = self._question(case, self._require_time)
        if self._answers[case] and sort_key(case) < sort_key(self.best):
            self.best = case
            self._on_better(case)
        return self._answers[case]

    def _require_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise TimeUp

    def forget(self) -> None:
        """Have what was not interesting asked about anew."""
        self._answers = {case: True for case, interesting in self._answers.items() if interesting}

    def return_to(self, case: Case) -> None:
        """Take back all that was found since an earlier best, and all answers but that one."""
        self._answers = {case: True}
        self.best = case
        self._on_better(case)


def sort_key(case: Case) -> SortKey:
    """Return where the case stands in the total order.

    That is by steps, settings, steps of the scene, and parts of syntax trees, so that it does not matter in which of
    several ways a statement is written; then by rows that series make, and by bytes.
    """
    settings = sum(1 + len(mode.settings) + (mode.protocol is not None) for mode in case.modes)
    steps = case.all_steps
    trees = sum(_count(step.sql) for step in steps)
    rows = sum(rows_in(step.sql) for step in steps)
    return len(steps), settings, len(case.scene), trees, rows, sum(map(_size, steps)), repr(case)


@lru_cache(maxsize=4096)
def _count(sql: str) -> int:
    """Return how many parts a statement's tree has; how many tokens the statement, where it has no tree."""
    return len(parts_of(sql)) or sum(1 for _ in tokens(sql))


def _size(step: Step) -> int:
    texts = (step.sql, *step.tags, *(value or "" for value in step.params))
    return step.ordered + len(step.copy_data or b"") + sum(map(len, texts))
