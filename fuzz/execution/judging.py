"""Judging a case: the runs that oracles request are executed, once each, until no oracle requests more.

An assignment lists the arms that an oracle judges. Some oracles need arms with equal plans.

With three arms or more, the arms vote on the one that has the fault. Each arm is compared with the first one only. So a
fault of the first arm appears as a fault of each other arm. If the others behave alike among themselves, they outvote
the first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from fuzz.errors import ServerError
from fuzz.execution.exchanges import Abandoned
from fuzz.servers.arm import Arm, features_of
from oracles.model.case import Case
from oracles.model.finding import Finding, Vote
from oracles.model.observation import CaseObservation, Observation, Outcome, Run
from oracles.model.oracle import Agree, Inconclusive, More, NotApplicable, Observations, Oracle, Unstable, Verdict


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
    errors: tuple[Exception, ...] = ()  # of oracles, which have no verdicts then
    outage: ServerError | None = None  # a server went away; the verdicts are those reached before

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the findings among the verdicts."""
        return tuple(verdict for _, verdict in self.verdicts if isinstance(verdict, Finding))

    @property
    def is_doubted(self) -> bool:
        """Return whether a verdict is a finding or a doubt."""
        return any(isinstance(verdict, Finding | Inconclusive | Unstable) for _, verdict in self.verdicts)

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

    def raise_errors(self) -> None:
        """Raise the first error of an oracle, or the ServerError of a server that went away before any finding."""
        outage = () if self.outage is None or self.findings else (self.outage,)
        for error in (*self.errors, *outage):
            raise error


_Judgement = tuple[Verdict, ...] | More | Exception


def judge_case(
    executor: Observer,
    assignments: Sequence[Assignment],
    case: Case,
    known: Observations | None = None,
    enough: str | None = None,
) -> JudgedCase:
    """Judge a case as `judge_despite_errors` does.

    Raises the exceptions of oracles, and ServerError if a server went away before any finding.
    """
    judged = judge_despite_errors(executor, assignments, case, known, enough)
    judged.raise_errors()
    return judged


def judge_despite_errors(
    executor: Observer,
    assignments: Sequence[Assignment],
    case: Case,
    known: Observations | None = None,
    enough: str | None = None,
) -> JudgedCase:
    """Judge a case by the assigned oracles, and return their errors with the verdicts of the others.

    Observations in `known` are not repeated. Judging stops as soon as an oracle reports the symptom `enough`, even if
    more runs might refute it. It also stops if a server goes away, or if it is abandoned.

    In each round all oracles judge again, because a new observation may concern any of them. For example, a run that
    one oracle requested may crash. Oracles that judge their own runs only do not judge again after their verdicts.
    """
    observations = dict(known or {})
    judged = [_first_runs(assignment, case) for assignment in assignments]
    symptoms: frozenset[str] = frozenset()
    outage = None
    while any(isinstance(given, More) for given in judged):
        try:
            if wanted := _unobserved(judged, observations):
                observations |= executor.observe(case, wanted)
        except Abandoned:
            break
        except ServerError as error:
            outage = error
            pairs = zip(assignments, judged, strict=True)
            judged = [_judged_without_server(each, case, observations, before) for each, before in pairs]
            break
        pairs = zip(assignments, judged, strict=True)
        judged = [_judged_by(assignment, case, observations, before) for assignment, before in pairs]
        symptoms = frozenset().union(*(given.symptoms for given in judged if isinstance(given, More)))
        if enough in symptoms:
            break
    verdicts = (
        (assignment.oracle.name, _applicable(verdict))
        for assignment, given in zip(assignments, judged, strict=True)
        if isinstance(given, tuple)
        for verdict in with_votes(given, assignment.arms)
    )
    return JudgedCase(
        tuple(verdicts),
        observations,
        complete=outage is None and not any(isinstance(given, More) for given in judged),
        symptoms=symptoms,
        errors=tuple(given for given in judged if isinstance(given, Exception)),
        outage=outage,
    )


def _applicable(verdict: Verdict) -> Verdict:
    """Return the verdict, or NotApplicable for an agreement on no statement."""
    return NotApplicable() if isinstance(verdict, Agree) and not verdict.statements else verdict


def _first_runs(assignment: Assignment, case: Case) -> _Judgement:
    try:
        return More(assignment.oracle.runs(case, assignment.arms))
    except Exception as error:
        return error


def _judged_by(assignment: Assignment, case: Case, observations: Observations, before: _Judgement) -> _Judgement:
    """Return what an oracle returns, or the exception that it raises. After that it does not judge again."""
    if isinstance(before, Exception) or (isinstance(before, tuple) and assignment.oracle.judges_own_runs):
        return before
    try:
        given = assignment.oracle.judge(case, assignment.arms, observations)
        _require_progress(assignment.oracle, given, observations)
    except Exception as error:
        return error
    return given


def _judged_without_server(
    assignment: Assignment, case: Case, observations: Observations, before: _Judgement
) -> _Judgement:
    """Return what an oracle returns after a server went away, if its verdicts count then.

    Runs that it requests are skipped. Otherwise, a crash would be lost if its oracle waited for runs of other arms.
    """
    skipped = tuple(Observation(Outcome.SKIPPED) for _ in case.all_steps)
    known = dict(observations)
    while assignment.oracle.judges_lost_servers and isinstance(before, More):
        known |= {run: CaseObservation(run.arm, skipped) for run in before.runs if run not in known}
        before = _judged_by(assignment, case, known, before)
    return before


def _require_progress(oracle: Oracle, given: tuple[Verdict, ...] | More, observations: Observations) -> None:
    """Require verdicts, or a request for new runs; others would be repeated forever. Raises ValueError, TypeError."""
    if not isinstance(given, tuple | More):
        raise TypeError(f"oracle {oracle.name} returns neither a tuple of verdicts nor More: {given!r}")
    if isinstance(given, More) and all(run in observations for run in given.runs):
        raise ValueError(f"oracle {oracle.name} requests runs that it already has")


def _unobserved(judged: Sequence[_Judgement], observations: Observations) -> list[Run]:
    """Return the requested runs without observations."""
    requested = dict.fromkeys(run for given in judged if isinstance(given, More) for run in given.runs)
    return [run for run in requested if run not in observations]


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
