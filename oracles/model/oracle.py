"""Oracle: which runs it needs, and a pure judgement of what was observed in them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import ClassVar, Self

import oracles
from oracles.model.case import Case
from oracles.model.discovery import instances
from oracles.model.feature import Feature
from oracles.model.finding import Finding
from oracles.model.observation import CaseObservation, Run
from oracles.model.sampling import Sample


@dataclass(frozen=True, slots=True)
class Agree:
    """The arms agree; `statements` steps were really compared.

    `answers` are those that an oracle asked for besides those of the case, and held against another, or against them.
    """

    statements: int
    answers: int = field(default=0, compare=False)  # effort, nothing that is said


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """The oracle had nothing to compare: the case is not in its sample, or has no statement that it can judge."""


@dataclass(frozen=True, slots=True)
class Inconclusive:
    """The oracle could not judge, and why (a few words, the same for equal causes: they are counted)."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unstable:
    """The arms differ, but the one held against differs from itself under other plans too."""

    reason: str


@dataclass(frozen=True, slots=True)
class More:
    """No verdict before these runs have been observed too; `judge` is then called again with them.

    `symptoms` are those of findings that there will be unless these runs speak against it.
    """

    runs: tuple[Run, ...]
    symptoms: frozenset[str] = frozenset()


Verdict = Agree | NotApplicable | Finding | Inconclusive | Unstable
Observations = Mapping[Run, CaseObservation]


@dataclass(frozen=True, slots=True)
class Canary:
    """A bug planted through the sabotage module: on this case, the oracle must report the sabotaged arm."""

    sabotage: str
    case: Case
    needs_another_arm: bool = False  # it is seen beside a sound arm only


class Oracle(ABC):
    """A judge. Subclasses live one a file in `oracles/` and are found by `all_oracles`."""

    name: ClassVar[str]
    canaries: ClassVar[tuple[Canary, ...]]
    needs_equal_plans: ClassVar[bool] = False  # it is for arms whose patches say that their plans are equal
    needs_another_arm: ClassVar[bool] = True  # it has nothing to say of an arm without another to hold it against
    reference_is_steady: ClassVar[bool] = False  # its findings rest on `arms[0]` doing the same each time
    samples: ClassVar[tuple[Sample, ...]] = ()  # the shares of cases that it judges in runs of its own
    features: tuple[Feature, ...] = ()  # of the arms

    def of(self, features: tuple[Feature, ...]) -> Self:
        """Return the oracle for arms with these features."""
        oracle = copy(self)
        oracle.features = features
        return oracle

    def runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return the runs that this oracle wants for the case; by default the duel: once on each arm."""
        return duel(case, arms)

    @abstractmethod
    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        """Judge the observations of the runs asked for: pure, so that recorded ones can be judged again.

        `arms[0]` is the one the others are held against. Returns at least one verdict for each arm accused.
        """

    def may_become(self, whole: Case, smaller: Case) -> bool:
        """Tell whether what the oracle takes as given of a case still holds of a smaller one, which reduction made."""
        return True


def duel(case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
    """Return the plain runs of a case: once on each arm, in the case's own modes."""
    return tuple(Run(arm, case.modes) for arm in arms)


def accused(arms: Sequence[str]) -> tuple[str, ...]:
    """Return the arms that a verdict is due on: all but the one held against, or that one where it is alone."""
    return tuple(arms[1:] or arms)


def judge_each(
    suspects: Sequence[str], judge: Callable[[str], tuple[Verdict, ...] | More]
) -> tuple[Verdict, ...] | More:
    """Judge one arm after another; as long as any takes more runs, ask for all of those instead."""
    judged = [judge(suspect) for suspect in suspects]
    wanted = dict.fromkeys(run for given in judged if isinstance(given, More) for run in given.runs)
    if wanted:
        symptoms = (given.symptoms for given in judged if isinstance(given, More))
        return More(tuple(wanted), frozenset().union(*symptoms))
    return tuple(verdict for given in judged if not isinstance(given, More) for verdict in given)


def all_oracles() -> tuple[Oracle, ...]:
    """Return an instance of each oracle in this package, sorted by name."""
    return instances(Oracle, oracles)  # type: ignore[type-abstract]  # never instantiated itself
