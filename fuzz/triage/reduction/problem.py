"""Reduction problem: a case, a total order of cases, and a test whether a smaller case still shows the finding.

Passes only test cases. The problem stores the smallest interesting case of all tests. So a pass may be interrupted at
any time, and passes are independent of each other. The total order defines "smaller" for all of them.

A positive test takes many times as long as a negative one. So candidates are accepted provisionally after a fast test,
and the best of every eight is confirmed. If that fails, they are discarded, and the pass is repeated with full tests.
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
    """Yield path of the arguments, first and last number of each generate_series() between two integer literals."""
    for path, part in parts_of(sql):
        if isinstance(part, ast.FuncCall) and name_of(part) == "generate_series":
            match [integer(argument) for argument in part.args or ()]:
                case [int(first), int(last), *_]:
                    yield (*path, "args"), first, last


@lru_cache(maxsize=4096)
def rows_in(sql: str) -> int:
    """Return the total number of rows of these series, with steps of one."""
    return sum(max(0, last - first + 1) for _, first, last in series_in(sql))


SECONDS = 60.0  # time limit of a reduction in a campaign
RepeatedTest = Callable[[Case, Callable[[], None]], bool]
SortKey = tuple[int, int, int, int, int, int, str]


PROVISIONAL = 8  # provisionally accepted cases, before the best of them is confirmed


class TimeUp(Exception):  # a signal, no error
    """Signal that the time limit has passed; the best case so far is the result."""


class NotConfirmed(Exception):  # a signal, no error
    """Signal that the best case was not confirmed; the last confirmed case is the best again."""


class Problem:
    """The state of a reduction. Results of tests are stored, so that a repeated test is free and has the same result.

    `start` is interesting. A test may take several tries, and calls its second argument before each of them. While the
    problem is `provisional`, `fast_test` is used instead; its negative results are correct. `best` is the smallest case
    that passed a test, and `confirmed` the smallest confirmed one. `on_better` is called with each confirmed case.
    """

    def __init__(
        self,
        start: Case,
        is_interesting: RepeatedTest,
        seconds: float = float("inf"),
        on_better: Callable[[Case], Any] = lambda case: None,
        fast_test: RepeatedTest | None = None,
    ) -> None:
        self.best = self.confirmed = start
        self.provisional = fast_test is not None
        self._test = is_interesting
        self._fast_test = fast_test or is_interesting
        self._unconfirmed = 0
        self._deadline = time.monotonic() + seconds
        self._on_better = on_better
        self._results = {start: True}

    def is_interesting(self, case: Case) -> bool:
        """Return the result of the test of a case, and store the case if it is the best so far.

        Raises TimeUp after the time limit, and NotConfirmed if the best case so far is not confirmed.
        """
        if case not in self._results:
            self._results[case] = (self._fast_test if self.provisional else self._test)(case, self._require_time)
        if self._results[case] and sort_key(case) < sort_key(self.best):
            self.best = case
            self._unconfirmed += 1
            if not self.provisional:
                self._keep()
            elif self._unconfirmed >= PROVISIONAL:
                self.confirm()
        return self._results[case]

    def confirm(self) -> None:
        """Confirm the best case so far. Raises TimeUp, and NotConfirmed if it is not interesting."""
        if self.best == self.confirmed:
            return
        if not self._test(self.best, self._require_time):
            self.discard_unconfirmed()
            raise NotConfirmed
        self._keep()

    def _keep(self) -> None:
        self.confirmed = self.best
        self._unconfirmed = 0
        self._on_better(self.best)

    def discard_unconfirmed(self) -> None:
        """Discard all unconfirmed cases. Negative results stay."""
        self.best = self.confirmed
        self._unconfirmed = 0
        self._results = {case: False for case, interesting in self._results.items() if not interesting}
        self._results[self.confirmed] = True

    def _require_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise TimeUp

    def retry_rejected(self) -> None:
        """Discard negative results, so that these cases are tested again."""
        self._results = {case: True for case, interesting in self._results.items() if interesting}

    def return_to(self, case: Case) -> None:
        """Make an earlier case the best again, and discard all results except its own."""
        self._results = {case: True}
        self.best = case
        self._keep()


def sort_key(case: Case) -> SortKey:
    """Return the key of a case in the total order.

    It consists of the numbers of steps, settings, steps of the scene, parts of syntax trees, rows of series, and bytes.
    The parts of a tree do not depend on the formatting of a statement.
    """
    settings = sum(1 + len(mode.settings) + (mode.protocol is not None) for mode in case.modes) + len(case.samples)
    steps = case.all_steps
    trees = sum(_count(step.sql) for step in steps)
    rows = sum(rows_in(step.sql) for step in steps)
    return len(steps), settings, len(case.scene), trees, rows, sum(map(_size, steps)), repr(case)


@lru_cache(maxsize=4096)
def _count(sql: str) -> int:
    """Return the number of parts of a statement's tree, or of its tokens if it has no tree."""
    return len(parts_of(sql)) or sum(1 for _ in tokens(sql))


def _size(step: Step) -> int:
    texts = (step.sql, *step.tags, *(value or "" for value in step.params))
    return step.ordered + bool(step.same_rows) + len(step.copy_data or b"") + sum(map(len, texts))
