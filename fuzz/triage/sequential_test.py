"""SequentialTest: how often a case is tried before it is said not to show what the start shows.

A finding that always shows is asked about once. For one that shows now and then, a smaller case is tried until it is
clear whether it shows as often as the start, or less than a quarter as often: a sequential test (Wald, 1945), which
errs in either direction with a chance of at most RISK. So no step loses the finding for one that hardly ever shows,
but with that chance, and no step is refused that keeps it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import log

from oracles.model.case import Case

InterestingnessTest = Callable[[Case], bool]

ASKED = 3  # times before a case is taken to show always
SHOWN = 6  # times that one that does not has to show for its rate to be known
MOST = 30  # tries for that
ASKED_IN_VAIN = 20  # tries before it is said not to show at all: 2 % where it does so once in 6
RISK = 0.05
DOUBTED = 0.9  # the rate assumed where chance has a part, though what was looked at always showed
FADED = 4  # how many times less often is too seldom
_CLEAR = log((1 - RISK) / RISK)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """In how many runs a case showed what it should."""

    shown: int
    runs: int

    @property
    def always(self) -> bool:
        """Tell whether it did in all of them."""
        return self.shown == self.runs


class SequentialTest:
    """Asks a question about cases as often as it takes. `look` comes first, since it says how often that is."""

    def __init__(self, question: InterestingnessTest, seems: InterestingnessTest | None = None) -> None:
        """`seems` is the same question asked in less time, whose yes is worth less than its no."""
        self._question = question
        self._seems = seems or question
        self._rate: float | None = None

    @property
    def wavers(self) -> bool:
        """Tell whether the answer depends on chance."""
        return self._rate is not None and self._rate < 1

    def look(self, case: Case, seconds: float = float("inf")) -> Occurrence:
        """Find how often a case shows it. The first that does not always do so says how often others have to.

        After so many seconds it ends, but not in vain, unless it is the first.
        """
        until = time.monotonic() + seconds
        shown = runs = 0
        while not (runs >= ASKED and shown == runs) and shown < SHOWN and runs < (MOST if shown else ASKED_IN_VAIN):
            if runs >= ASKED and (shown or self._rate is None) and time.monotonic() > until:
                break
            shown += self._question(case)
            runs += 1
        if shown and not self.wavers:  # once known it stays, or it might fade step by step
            self._rate = shown / runs
        return Occurrence(shown, runs)

    def learn(self, case: Case) -> None:
        """Find at which rate a case shows it that seemed to do so always, while a smaller one does not."""
        shown = sum(self._question(case) for _ in range(2 * SHOWN))
        self._rate = min(DOUBTED, max(shown, 1) / (2 * SHOWN))

    def seems(self, case: Case, before_try: Callable[[], None] = lambda: None) -> bool:
        """Tell whether a case seems to show it; where the answer depends on chance, whether it does."""
        if self.wavers:
            return self.shows(case, before_try)
        before_try()
        return self._seems(case)

    def shows(self, case: Case, before_try: Callable[[], None] = lambda: None) -> bool:
        """Tell whether a case shows it, about as often as the one looked at; `before_try` may raise to end that."""
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
