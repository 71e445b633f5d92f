"""JudgedCase: one case before all oracles. What they ask for is executed, once each, until none asks for more.

Assignments: which arms each oracle judges. Some oracles are for arms of a kind only.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from fuzz.execution.exchanges import Abandoned
from fuzz.servers.arm import Arm
from oracles.framework.majority import with_votes
from oracles.model.case import Case
from oracles.model.finding import Finding
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Agree, More, Observations, Oracle, Verdict


@dataclass(frozen=True, slots=True)
class Assignment:
    """An oracle and the arms that it judges: the first is the one the others are held against, or is judged alone."""

    oracle: Oracle
    arms: tuple[str, ...]


def assignments(oracles: Sequence[Oracle], arms: Sequence[Arm]) -> tuple[Assignment, ...]:
    """Return the assignments of all oracles that have arms to judge: two, or a single one if they can do with that."""
    given = (Assignment(oracle, tuple(arm.name for arm in _judged(oracle, arms))) for oracle in oracles)
    return tuple(assignment for assignment in given if len(assignment.arms) > assignment.oracle.needs_another_arm)


def absences(oracles: Sequence[Oracle], arms: Sequence[Arm]) -> Iterator[str]:
    """Yield a line for each arm that an oracle does not judge: which, and why."""
    if len(arms) == 1:
        idle = ", ".join(oracle.name for oracle in oracles if oracle.needs_another_arm)
        yield f"{idle}: not asked, there is no other arm to hold {arms[0].name} against"
        return
    for oracle in oracles:
        judged = _judged(oracle, arms)
        for arm in arms:
            if arm not in judged:
                yield f"{oracle.name}: not compared, plans of {arm.name} may be others than those of {arms[0].name}"


def _judged(oracle: Oracle, arms: Sequence[Arm]) -> list[Arm]:
    """Return the arms whose differences, if any, the oracle may blame on one of them."""
    if not oracle.needs_equal_plans:
        return list(arms)
    return [arm for arm in arms if arm.planner == arms[0].planner]


class Observer(Protocol):
    """Whatever executes runs: an Executor, or one that plants bugs."""

    def observe(self, case: Case, runs: Sequence[Run]) -> Mapping[Run, CaseObservation]:
        """Execute each run and return what was observed. Raises ServerError, Abandoned."""


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """The verdicts on a case, as pairs of an oracle's name and a verdict, and all that they rest on."""

    verdicts: tuple[tuple[str, Verdict], ...]
    observations: Mapping[Run, CaseObservation]
    complete: bool = True  # False: it was abandoned, or enough; verdicts are those that were certain by then
    symptoms: frozenset[str] = frozenset()  # of findings that nothing spoke against when that was enough

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the findings among the verdicts."""
        return tuple(verdict for _, verdict in self.verdicts if isinstance(verdict, Finding))

    @property
    def statements(self) -> int:
        """Return how many statements were really compared: by the oracle that compared most, since all see the same."""
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
    """Try a case before the oracles, each of which judges the arms that it is assigned. Raises ServerError.

    What is `known` of it by now is not observed again. A symptom that is `enough` ends it, whatever may yet speak
    against it.
    All oracles judge anew in each round, so that each has seen every run in the end: a crash in a run that another
    oracle asked for is seen too.
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
        (assignment.oracle.name, verdict)
        for assignment, given in zip(
            assignments, judged, strict=False
        )  # nothing was judged where the first runs were abandoned
        if not isinstance(given, More)
        for verdict in with_votes(given, assignment.arms)
    )
    return JudgedCase(tuple(verdicts), observations, complete=not wanted, symptoms=symptoms)


def _first_runs(assignments: Sequence[Assignment], case: Case) -> Iterator[Run]:
    return (run for assignment in assignments for run in assignment.oracle.runs(case, assignment.arms))


def _unobserved(
    assignments: Sequence[Assignment],
    judged: Sequence[tuple[Verdict, ...] | More],
    observations: Mapping[Run, CaseObservation],
) -> list[Run]:
    """Return the runs asked for. An oracle that asks for what it has would go on asking for ever."""
    wanted: dict[Run, None] = {}
    for assignment, given in zip(assignments, judged, strict=True):
        if isinstance(given, More):
            missing = [run for run in given.runs if run not in observations]
            if not missing:
                raise ValueError(f"oracle {assignment.oracle.name} asks for runs that it was given")
            wanted |= dict.fromkeys(missing)
    return list(wanted)
