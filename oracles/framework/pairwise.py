"""Pairwise oracles: they compare each other arm with the first one, some of them in a share of the cases only."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from oracles.model.case import Case
from oracles.model.feature import Feature
from oracles.model.observation import Run
from oracles.model.oracle import More, NotApplicable, Observations, Oracle, Verdict, duel, judge_each

REPETITIONS: Final = range(1, 7)  # numbers of repetitions, which make equal runs different runs


@dataclass(frozen=True, slots=True)
class Pair(ABC):
    """A suspect and its reference, on one case."""

    case: Case
    reference: str
    suspect: str
    observations: Observations
    features: tuple[Feature, ...] = ()  # of the arms

    @abstractmethod
    def judge(self) -> tuple[Verdict, ...] | More:
        """Return at least one verdict on the suspect, or the runs that a verdict needs."""

    def missing(self, runs: Iterable[Run]) -> tuple[Run, ...]:
        """Return the runs that have not been observed."""
        return tuple(run for run in runs if run not in self.observations)


class Pairwise(Oracle):
    """An oracle that judges each suspect by comparison with the first arm alone."""

    @property
    @abstractmethod
    def pair(self) -> type[Pair]:
        """Return the class of the pair that judges a suspect."""

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        """Return verdicts on each other arm, compared with `arms[0]`, or a request for more runs."""
        return judge_each(
            arms[1:], lambda suspect: self.pair(case, arms[0], suspect, observations, self.features).judge()
        )


class SampledPairwise(Pairwise):
    """A pairwise oracle with additional runs in a share of the cases; other cases are not applicable."""

    @abstractmethod
    def own_runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return the oracle's own runs of the case; none if the case is not in its sample."""

    def runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return the plain runs, and the oracle's own."""
        return duel(case, arms) + self.own_runs(case, arms)

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        """Return verdicts on each other arm, compared with `arms[0]`, if the case is in the sample."""
        if not self.own_runs(case, arms):
            return (NotApplicable(),) * len(arms[1:])
        return super().judge(case, arms, observations)
