"""Oracle: the runs that it needs, a pure judgement of their observations, its samples and its canaries.

A sample is a share of cases that get expensive runs. A case's content selects it, so another run selects the same.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Self

import oracles
from oracles.model.case import Case
from oracles.model.discovery import instances, instances_below
from oracles.model.feature import Feature
from oracles.model.finding import Finding
from oracles.model.observation import CaseObservation, Run

ORACLE_FILES: Final = "pgduel_oracle_files"  # prefix of modules that are the user's files
CONNECTION_LOST: Final = "connection lost"  # reason of an inconclusive verdict


@dataclass(frozen=True, slots=True)
class Agree:
    """Verdict that arms agree on the `statements` steps that were compared.

    `answers` is the number of compared results of the oracle's own queries, which are no steps of the case.
    """

    statements: int
    answers: int = field(default=0, compare=False)  # a measure of effort, so it is no part of the verdict


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """Verdict on a case outside of the oracle's sample, or without a statement that the oracle can judge."""


@dataclass(frozen=True, slots=True)
class Inconclusive:
    """Verdict that judgement was impossible.

    `reason` has a few words, equal for equal causes, because reasons are counted. `step` is the position of the step in
    question in `case.all_steps`, and `sides` what was expected and seen, where the oracle knows.
    """

    reason: str
    step: int | None = field(default=None, compare=False)
    sides: tuple[str, str] = field(default=("", ""), compare=False)


@dataclass(frozen=True, slots=True)
class Unstable:
    """Verdict that the arms differ, but not each time, or that the reference differs from itself, too.

    The fields are those of `Inconclusive`.
    """

    reason: str
    step: int | None = field(default=None, compare=False)
    sides: tuple[str, str] = field(default=("", ""), compare=False)


@dataclass(frozen=True, slots=True)
class More:
    """Request for more runs before a verdict. `judge` is called again with their observations.

    `symptoms` are those of the findings that follow unless these runs refute them.
    """

    runs: tuple[Run, ...]
    symptoms: frozenset[str] = frozenset()


Verdict = Agree | NotApplicable | Finding | Inconclusive | Unstable
Observations = Mapping[Run, CaseObservation]


@dataclass(frozen=True, slots=True)
class Sample:
    """One case in `share`, and each case that names the sample. An oracle's file declares its samples."""

    name: str
    share: int

    @property
    def alone(self) -> "Sample":
        """Return the sample of all cases, for a single arm: few other oracles judge that."""
        return replace(self, share=1)

    def __contains__(self, case: Case) -> bool:
        """Return whether a case is in the sample: it names the sample, or a hash of its content selects it."""
        if self.name in case.samples or not case.sampled_by_content:
            return self.name in case.samples
        if self.share == 1:
            return True
        content = repr([self.name, *((step.sql, step.copy_data, step.params) for step in case.all_steps)])
        return int.from_bytes(hashlib.sha256(content.encode()).digest()[:4], "big") % self.share == 0


@dataclass(frozen=True, slots=True)
class Canary:
    """A bug that the fault injector plants. On this case, the oracle must report the arm that has it."""

    fault: str
    case: Case
    needs_another_arm: bool = False  # visible only in comparison with an arm without the bug


class Oracle(ABC):
    """A judge of observations. Each subclass has its own file or folder in `oracles/`, where `all_oracles` finds it."""

    name: ClassVar[str]
    canaries: ClassVar[tuple[Canary, ...]]
    needs_equal_plans: ClassVar[bool] = False  # it judges only arms whose patches declare that they keep plans
    needs_another_arm: ClassVar[bool] = True  # it cannot judge a single arm
    reference_is_steady: ClassVar[bool] = False  # its findings presume that `arms[0]` behaves alike each time
    origin_is_cause: ClassVar[bool] = False  # findings of one origin, a place in the server, have one cause
    judges_lost_servers: ClassVar[bool] = False  # its verdicts count even if a server went away meanwhile
    judges_own_runs: ClassVar[bool] = False  # its verdicts do not depend on runs that only others requested
    samples: ClassVar[tuple[Sample, ...]] = ()  # shares of the cases that it judges with additional runs
    actual_title: ClassVar[str] = "actual"  # title of a finding's actual behaviour in a mail
    script_begin: ClassVar[str] = ""  # statements of a reproducer before its case
    script_end: ClassVar[str] = ""  # statements after its case, in place of the query of all tables
    features: tuple[Feature, ...] = ()  # of the arms

    def of(self, features: tuple[Feature, ...]) -> Self:
        """Return the oracle for arms with these features."""
        oracle = copy(self)
        oracle.features = features
        return oracle

    def runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return the runs that this oracle needs for the case; by default one plain run on each arm."""
        return duel(case, arms)

    @abstractmethod
    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        """Return verdicts on the observations of the requested runs: at least one for each judged arm.

        `arms[0]` is the reference. The function is pure, so recorded observations can be judged again.
        """

    def origins(self, seen: CaseObservation) -> Iterable[str]:
        """Return the origins of the findings that a run shows by itself, whichever oracle requested it."""
        return ()

    def may_become(self, whole: Case, smaller: Case) -> bool:
        """Return whether reduction may replace the case with a smaller one without violating the oracle's premises."""
        return True


def duel(case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
    """Return the plain runs of a case: one on each arm, in the case's own modes."""
    return tuple(Run(arm, case.modes) for arm in arms)


def judged_arms(arms: Sequence[str]) -> tuple[str, ...]:
    """Return the arms that need a verdict: all but the reference, or the reference if it is the only arm."""
    return tuple(arms[1:] or arms)


def judge_each(
    suspects: Sequence[str], judge: Callable[[str], tuple[Verdict, ...] | More]
) -> tuple[Verdict, ...] | More:
    """Return the verdicts on all suspects, or a request for all runs that any of them needs."""
    judged = [judge(suspect) for suspect in suspects]
    wanted = dict.fromkeys(run for given in judged if isinstance(given, More) for run in given.runs)
    if wanted:
        symptoms = (given.symptoms for given in judged if isinstance(given, More))
        return More(tuple(wanted), frozenset().union(*symptoms))
    return tuple(verdict for given in judged if not isinstance(given, More) for verdict in given)


def all_oracles() -> tuple[Oracle, ...]:
    """Return an instance of each oracle: those of this package, then those of the user's files; each sorted by name."""
    own = instances_below(Oracle, ORACLE_FILES)  # type: ignore[type-abstract]  # never instantiated itself
    return instances(Oracle, oracles) + own  # type: ignore[type-abstract]


def oracle_named(name: str) -> Oracle | None:
    """Return the oracle of a name, or None if it does not exist."""
    return next((oracle for oracle in all_oracles() if oracle.name == name), None)
