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

InterestingnessTest = Callable[[Case], bool]

ASKED = 3  # tries after which a case is taken to show the finding always
SHOWN = 6  # occurrences that determine the rate of a case that does not show it always
MOST = 30  # limit of tries for that
ASKED_IN_VAIN = 20  # tries after which a case is taken not to show it; wrong in 2 % if it shows it once in 6
RISK = 0.05
DOUBTED = 0.9  # the rate assumed for a case that always showed it, if chance is involved
FADED = 4  # factor by which a smaller case's rate is too low
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
    """A test of cases that is repeated as often as necessary. Call `look` first, which determines the rate."""

    def __init__(self, question: InterestingnessTest, seems: InterestingnessTest | None = None) -> None:
        """`seems` is a faster form of `question`, which may return True wrongly."""
        self._question = question
        self._seems = seems or question
        self._rate: float | None = None

    @property
    def wavers(self) -> bool:
        """Return whether the result depends on chance."""
        return self._rate is not None and self._rate < 1

    def look(self, case: Case, seconds: float = float("inf")) -> Occurrence:
        """Return how often a case shows the finding. The first case that does not always show it determines the rate.

        It ends after `seconds`. Only the first case may then be without an occurrence.
        """
        until = time.monotonic() + seconds
        shown = runs = 0
        while not (runs >= ASKED and shown == runs) and shown < SHOWN and runs < (MOST if shown else ASKED_IN_VAIN):
            if runs >= ASKED and (shown or self._rate is None) and time.monotonic() > until:
                break
            shown += self._question(case)
            runs += 1
        if shown and not self.wavers:  # a known rate stays, or it might decrease step by step
            self._rate = shown / runs
        return Occurrence(shown, runs)

    def learn(self, case: Case) -> None:
        """Determine the rate of a case that seemed to show the finding always, when a smaller one does not."""
        shown = sum(self._question(case) for _ in range(2 * SHOWN))
        self._rate = min(DOUBTED, max(shown, 1) / (2 * SHOWN))

    def seems(self, case: Case, before_try: Callable[[], None] = lambda: None) -> bool:
        """Return whether the fast test succeeds for a case; if the result depends on chance, as `shows`."""
        if self.wavers:
            return self.shows(case, before_try)
        before_try()
        return self._seems(case)

    def shows(self, case: Case, before_try: Callable[[], None] = lambda: None) -> bool:
        """Return whether a case shows the finding about as often as the first one.

        `before_try` is called before each try, and may raise an exception to end the test.
        """
        before_try()
        if self._rate is None or self._rate == 1:
            return self._question(case)
        faded = self._rate / FADED
        hit, miss = log(self._rate / faded), log((1 - self._rate) / (1 - faded))
        evidence = 0.0
        while abs(evidence) < _CLEAR:
            evidence += hit if self._question(case) else miss
            before_try()
        return evidence > 0
