"""Pairwise: oracles that hold each other arm against the first one, by itself; some look at a share of cases only."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from oracles.model.case import Case
from oracles.model.observation import Run
from oracles.model.oracle import More, NotApplicable, Observations, Oracle, Verdict, duel, judge_each

REPETITIONS: Final = range(1, 7)


@dataclass(frozen=True, slots=True)
class Pair(ABC):
    """A suspect and the arm that it is held against, on one case."""

    case: Case
    reference: str
    suspect: str
    observations: Observations

    @abstractmethod
    def judge(self) -> tuple[Verdict, ...] | More:
        """Return at least one verdict on the suspect, or the runs that it takes to tell."""

    def missing(self, runs: Iterable[Run]) -> tuple[Run, ...]:
        """Return those of the runs that have not been observed."""
        return tuple(run for run in runs if run not in self.observations)


class Pairwise(Oracle):
    """An oracle whose pair says all there is to say of a suspect."""

    @property
    @abstractmethod
    def pair(self) -> type[Pair]:
        """The pair that judges."""

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        """Judge each other arm against `arms[0]`; where they differ, ask for the runs that settle it."""
        return judge_each(arms[1:], lambda suspect: self.pair(case, arms[0], suspect, observations).judge())


class Sampled(Pairwise):
    """A pairwise oracle with runs of its own, in a share of the cases; it has nothing to say of the others."""

    @abstractmethod
    def looks(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return its own runs of the case, none if it is not among those that it looks at."""

    def runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return the duel, and the oracle's own runs."""
        return duel(case, arms) + self.looks(case, arms)

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        """Judge each other arm against `arms[0]` if the case is looked at, else agree on nothing."""
        if not self.looks(case, arms):
            return (NotApplicable(),) * len(arms[1:])
        return super().judge(case, arms, observations)
