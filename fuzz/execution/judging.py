"""Judging a case: the runs that oracles request are executed, once each, until no oracle requests more.

An assignment lists the arms that an oracle judges. Some oracles need arms with equal plans.

With three arms or more, the arms vote on the one that has the fault. Each arm is compared with the first one only. So a
fault of the first arm appears as a fault of each other arm. If the others behave alike among themselves, they outvote
the first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from fuzz.execution.exchanges import Abandoned
from fuzz.servers.arm import Arm, features_of
from oracles.model.case import Case
from oracles.model.finding import Finding, Vote
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Agree, More, NotApplicable, Observations, Oracle, Verdict


@dataclass(frozen=True, slots=True)
class Assignment:
    """An oracle and the arms that it judges. The first is the reference, or the only one."""

    oracle: Oracle
    arms: tuple[str, ...]


def assignments(oracles: Sequence[Oracle], arms: Sequence[Arm]) -> tuple[Assignment, ...]:
    """Return the assignments of all oracles with enough arms to judge: two, or one if that suffices for the oracle."""
    features = features_of(arms)
    given = (Assignment(oracle.of(features), tuple(arm.name for arm in _judged(oracle, arms))) for oracle in oracles)
    return tuple(assignment for assignment in given if len(assignment.arms) > assignment.oracle.needs_another_arm)


def absences(oracles: Sequence[Oracle], arms: Sequence[Arm]) -> Iterator[str]:
    """Yield a line with the reason for each arm that an oracle does not judge."""
    if len(arms) == 1:
        idle = ", ".join(oracle.name for oracle in oracles if oracle.needs_another_arm)
        yield f"{idle}: not used, because there is no arm to compare {arms[0].name} with"
        return
    for oracle in oracles:
        judged = _judged(oracle, arms)
        for arm in arms:
            if arm not in judged:
                yield f"{oracle.name}: not used, because plans of {arm.name} may differ from those of {arms[0].name}"


def _judged(oracle: Oracle, arms: Sequence[Arm]) -> list[Arm]:
    """Return the arms that the oracle may compare with the reference."""
    if not oracle.needs_equal_plans:
        return list(arms)
    return [arm for arm in arms if arm.planner == arms[0].planner]


class Observer(Protocol):
    """An executor of runs: `Executor`, or a wrapper that plants bugs."""

    def observe(self, case: Case, runs: Sequence[Run]) -> Mapping[Run, CaseObservation]:
        """Execute each run, and return the observations. Raises ServerError, Abandoned."""


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """The verdicts on a case, each with the oracle's name, and the observations that they are based on."""

    verdicts: tuple[tuple[str, Verdict], ...]
    observations: Mapping[Run, CaseObservation]
    # False if judging was abandoned, or stopped at the symptom `enough`. The verdicts are then those reached so far.
    complete: bool = True
    # symptoms of unconfirmed findings when judging stopped
    symptoms: frozenset[str] = frozenset()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the findings among the verdicts."""
        return tuple(verdict for _, verdict in self.verdicts if isinstance(verdict, Finding))

    @property
    def statements(self) -> int:
        """Return the number of compared statements.

        It is a maximum over oracles, because all judge the same statements.
        """
        compared = {name: 0 for name, _ in self.verdicts}
        for name, verdict in self.verdicts:
            if isinstance(verdict, Agree):
                compared[name] += verdict.statements
        return max(compared.values(), default=0)


def judge_case(
    executor: Observer,
    assignments: Sequence[Assignment],
    case: Case,
    known: Observations | None = None,
    enough: str | None = None,
) -> JudgedCase:
    """Judge a case by the assigned oracles. Raises ServerError.

    Observations in `known` are not repeated. Judging stops as soon as an oracle reports the symptom `enough`, even if
    more runs might refute it.

    In each round all oracles judge again, because a new observation may concern any of them. For example, a run that
    one oracle requested may crash.
    """
    observations = dict(known or {})
    judged: list[tuple[Verdict, ...] | More] = []
    symptoms: frozenset[str] = frozenset()
    wanted = [run for run in dict.fromkeys(_first_runs(assignments, case)) if run not in observations]
    while wanted:
        try:
            observations |= executor.observe(case, wanted)
        except Abandoned:
            break
        judged = [assignment.oracle.judge(case, assignment.arms, observations) for assignment in assignments]
        symptoms = frozenset().union(*(given.symptoms for given in judged if isinstance(given, More)))
        if enough in symptoms:
            break
        wanted = _unobserved(assignments, judged, observations)
    verdicts = (
        (assignment.oracle.name, _applicable(verdict))
        for assignment, given in zip(
            assignments, judged, strict=False
        )  # there is no judgement if the first runs were abandoned
        if not isinstance(given, More)
        for verdict in with_votes(given, assignment.arms)
    )
    return JudgedCase(tuple(verdicts), observations, complete=not wanted, symptoms=symptoms)


def _applicable(verdict: Verdict) -> Verdict:
    """Return the verdict, or NotApplicable for an agreement on no statement."""
    return NotApplicable() if isinstance(verdict, Agree) and not verdict.statements else verdict


def _first_runs(assignments: Sequence[Assignment], case: Case) -> Iterator[Run]:
    return (run for assignment in assignments for run in assignment.oracle.runs(case, assignment.arms))


def _unobserved(
    assignments: Sequence[Assignment],
    judged: Sequence[tuple[Verdict, ...] | More],
    observations: Mapping[Run, CaseObservation],
) -> list[Run]:
    """Return the requested runs without observations.

    Raises ValueError if an oracle requests only runs that it has, because it would do so forever.
    """
    wanted: dict[Run, None] = {}
    for assignment, given in zip(assignments, judged, strict=True):
        if isinstance(given, More):
            missing = [run for run in given.runs if run not in observations]
            if not missing:
                raise ValueError(f"oracle {assignment.oracle.name} requests runs that it already has")
            wanted |= dict.fromkeys(missing)
    return list(wanted)


def with_votes(verdicts: Sequence[Verdict], arms: Sequence[str]) -> Iterator[Verdict]:
    """Yield an oracle's verdicts on a case; findings have the vote of the judged arms.

    An arm without a finding votes for the reference only if no verdict is unstable or inconclusive.
    """
    findings = [verdict for verdict in verdicts if isinstance(verdict, Finding)]
    certain = all(isinstance(verdict, Agree | Finding) for verdict in verdicts)
    for verdict in verdicts:
        yield replace(verdict, vote=_vote(verdict, findings, arms, certain=certain)) if verdict in findings else verdict


def _vote(finding: Finding, findings: Sequence[Finding], arms: Sequence[str], *, certain: bool) -> Vote | None:
    reference, suspect = finding.arms
    here = {other.arms[1]: other for other in findings if other.step == finding.step and other.arms[0] == reference}
    like_reference = tuple(arm for arm in arms if arm == reference or (certain and arm not in here))
    like_suspect = tuple(arm for arm in arms if arm in here and here[arm].actual == finding.actual)
    if finding.shown_by_all or len(like_reference) == len(like_suspect):
        return None
    if len(like_reference) > len(like_suspect):
        return Vote(suspect, like_reference)
    return Vote(reference, like_suspect)
