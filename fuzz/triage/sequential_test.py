"""Sequential test: the number of tries after which a case is taken not to show a finding.

If the finding always occurs in the first case, a smaller case is tried once. Otherwise, a smaller case is tried until
its rate is clear: as high as that of the first case, or less than a quarter of it. This is a sequential probability
ratio test (Wald, 1945), whose error in either direction is at most RISK. So with at most that probability, a step of
reduction accepts a case that rarely shows the finding, or rejects one that keeps it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import log

from oracles.model.case import Case

CaseTest = Callable[[Case], bool]

CERTAIN_TRIES = 3  # tries after which a case is taken to show the finding always
ENOUGH_SHOWN = 6  # occurrences that determine the rate of a case that does not show it always
MAX_TRIES = 30  # limit of tries for that
VAIN_TRIES = 20  # tries after which a case is taken not to show it; wrong in 2 % if it shows it once in 6
RISK = 0.05
ASSUMED_RATE = 0.9  # the rate assumed for a case that always showed it, if chance is involved
RATE_FACTOR = 4  # factor by which a smaller case's rate is too low
_CLEAR = log((1 - RISK) / RISK)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """The number of runs of a case, and of those that showed the finding."""

    shown: int
    runs: int

    @property
    def always(self) -> bool:
        """Return whether all runs showed the finding."""
        return self.shown == self.runs


class SequentialTest:
    """A test of cases that is repeated as often as necessary. Call `measure` first, which determines the rate."""

    def __init__(self, test: CaseTest, fast_test: CaseTest | None = None) -> None:
        """`fast_test` is a faster form of `test`, which may return True wrongly."""
        self._test = test
        self._fast_test = fast_test or test
        self._rate: float | None = None

    @property
    def depends_on_chance(self) -> bool:
        """Return whether the result depends on chance."""
        return self._rate is not None and self._rate < 1

    def measure(self, case: Case, seconds: float = float("inf")) -> Occurrence:
        """Return how often a case shows the finding. The first case that does not always show it determines the rate.

        It ends after `seconds`, and without any occurrence of a smaller case after three times as many.
        """
        began = time.monotonic()
        shown = runs = 0
        while shown < ENOUGH_SHOWN and runs < (MAX_TRIES if shown else VAIN_TRIES):
            patience = seconds if shown or self._rate is None else seconds * 3
            if runs >= CERTAIN_TRIES and (shown == runs or time.monotonic() - began > patience):
                break
            shown += self._test(case)
            runs += 1
        if shown and not self.depends_on_chance:  # a known rate stays, or it might decrease step by step
            self._rate = shown / runs
        return Occurrence(shown, runs)

    def remeasure(self, case: Case, seconds: float = float("inf")) -> None:
        """Determine the rate of a case that seemed to show the finding always, when a smaller one does not.

        It ends after `seconds`.
        """
        until = time.monotonic() + seconds
        shown = runs = 0
        while not runs or (runs < 2 * ENOUGH_SHOWN and time.monotonic() <= until):
            shown += self._test(case)
            runs += 1
        self._rate = min(ASSUMED_RATE, max(shown, 1) / max(runs, 2))

    def passes_fast_test(self, case: Case, before_try: Callable[[], None] = lambda: None) -> bool:
        """Return whether the fast test succeeds for a case; if the result depends on chance, as `shows`."""
        if self.depends_on_chance:
            return self.shows(case, before_try)
        before_try()
        return self._fast_test(case)

    def shows(self, case: Case, before_try: Callable[[], None] = lambda: None, seconds: float = float("inf")) -> bool:
        """Return whether a case shows the finding about as often as the first one.

        `before_try` is called before each try, and may raise an exception to end the test. After `seconds`, the
        likelier answer is returned.
        """
        until = time.monotonic() + seconds
        before_try()
        if self._rate is None or self._rate == 1:
            return self._test(case)
        too_low = self._rate / RATE_FACTOR
        hit, miss = log(self._rate / too_low), log((1 - self._rate) / (1 - too_low))
        evidence = 0.0
        while not evidence or (abs(evidence) < _CLEAR and time.monotonic() <= until):
            evidence += hit if self._test(case) else miss
            before_try()
        return evidence > 0
