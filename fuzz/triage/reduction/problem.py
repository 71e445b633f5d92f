"""Problem: a case, a total order on cases, and a question that tells whether a smaller case still shows the finding.

The key insight: a pass only asks. Whatever it asks about, the problem remembers the smallest interesting case seen, so
a pass may be interrupted anywhere, and passes need not know of each other. The total order makes "smaller" mean the
same to all of them.

To be sure of a case takes many times as long as to see that it is not interesting. So a case that seems to be is taken
at its word, and the best so far is looked at closely after a few of them; where that was wrong, they are taken back,
and the pass asks anew, closely each time.

Series: where statements make rows by the number, with generate_series between two written integers.
"""

import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from pglast import ast

from fuzz.sources.scripts.psql import tokens
from fuzz.triage.reduction.trees import Path, parts_of
from oracles.model.case import Case, Step
from oracles.sql.determinism import name_of
from oracles.sql.total_order import integer


def series_in(sql: str) -> Iterator[tuple[Path, int, int]]:
    """Yield where the arguments of each series stand whose ends are written in numbers, and both its ends."""
    for path, part in parts_of(sql):
        if isinstance(part, ast.FuncCall) and name_of(part) == "generate_series":
            match [integer(argument) for argument in part.args or ()]:
                case [int(first), int(last), *_]:
                    yield (*path, "args"), first, last


@lru_cache(maxsize=4096)
def rows_in(sql: str) -> int:
    """Return how many rows all these series have, as if in steps of one."""
    return sum(max(0, last - first + 1) for _, first, last in series_in(sql))


SECONDS = 60.0  # that a campaign gives the reduction of a finding
Ask = Callable[[Case, Callable[[], None]], bool]
SortKey = tuple[int, int, int, int, int, int, str]


TRUSTED = 8  # cases that only seem to be interesting, before the best of them is looked at closely


class TimeUp(Exception):  # an end, not an error
    """The time limit has passed; the best case so far stands."""


class Deceived(Exception):  # no error either
    """The best case only seemed to be interesting; the last that is for sure is the best again."""


class Problem:
    """What is being reduced. Answers are remembered, so that asking twice costs nothing and is answered alike.

    `start` is known to be interesting. What is asked about a case may take several tries, before each of which it calls
    what it is given. `seems` is asked instead as long as the problem is `trusting`; what it denies is not interesting.
    `best` is the smallest case seen, `sure` the smallest of those looked at closely, each of which goes to `on_better`.
    """

    def __init__(
        self,
        start: Case,
        is_interesting: Ask,
        seconds: float = float("inf"),
        on_better: Callable[[Case], Any] = lambda case: None,
        seems: Ask | None = None,
    ) -> None:
        self.best = self.sure = start
        self.trusting = seems is not None
        self._question = is_interesting
        self._seems = seems or is_interesting
        self._unsettled = 0
        self._deadline = time.monotonic() + seconds
        self._on_better = on_better
        self._answers = {start: True}

    def is_interesting(self, case: Case) -> bool:
        """Ask about a case, and keep it if it is the best so far.

        Raises TimeUp once the time limit has passed, Deceived where the best so far was not what it seemed.
        """
        if case not in self._answers:
            self._answers[case] = (self._seems if self.trusting else self._question)(case, self._require_time)
        if self._answers[case] and sort_key(case) < sort_key(self.best):
            self.best = case
            self._unsettled += 1
            if not self.trusting:
                self._keep()
            elif self._unsettled >= TRUSTED:
                self.settle()
        return self._answers[case]

    def settle(self) -> None:
        """Make sure of the best case so far. Raises TimeUp, and Deceived where it is not interesting."""
        if self.best == self.sure:
            return
        if not self._question(self.best, self._require_time):
            self.fall_back()
            raise Deceived
        self._keep()

    def _keep(self) -> None:
        self.sure = self.best
        self._unsettled = 0
        self._on_better(self.best)

    def fall_back(self) -> None:
        """Take back what only seemed to be interesting. What did not even seem so stays denied."""
        self.best = self.sure
        self._unsettled = 0
        self._answers = {case: False for case, interesting in self._answers.items() if not interesting}
        self._answers[self.sure] = True

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
        self._keep()


def sort_key(case: Case) -> SortKey:
    """Return where the case stands in the total order.

    That is by steps, settings, steps of the scene, and parts of syntax trees, so that it does not matter in which of
    several ways a statement is written; then by rows that series make, and by bytes.
    """
    settings = sum(1 + len(mode.settings) + (mode.protocol is not None) for mode in case.modes) + len(case.samples)
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
    return step.ordered + bool(step.same_rows) + len(step.copy_data or b"") + sum(map(len, texts))
