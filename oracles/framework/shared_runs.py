"""Runs that several oracles request: planned ones, whose queries are not executed, and repeated ones.

A repeated run executes a case several times in one session, which shows growth and memory freed too early.
"""

from collections.abc import Sequence
from typing import Final

from oracles.explain.nodes import plans
from oracles.framework.verdicts import lost_session, outcomes_doubt
from oracles.model.case import Case, Kind
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Inconclusive
from oracles.model.sampling import Sample

PLANNED: Final = Sample("planned", 5)  # the scene, and plans of queries that are not executed
_PLANNINGS: Final = 2  # the first planning may have to fill caches


def planned_runs(case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
    """Return a planned run on each arm if the case is in the sample and has a query."""
    wanted = case in PLANNED and any(step.kind is Kind.QUERY for step in case.all_steps)
    return tuple(planned_run(case, arm) for arm in arms) if wanted else ()


def planned_run(case: Case, arm: str, repetition: int = 0) -> Run:
    """Return the planned run of a case on an arm, or a repetition of it."""
    return Run(arm, case.modes, plannings=_PLANNINGS, repetition=repetition)


def planned_steps(reference: CaseObservation, suspect: CaseObservation) -> tuple[list[int], Inconclusive | None]:
    """Return the steps that both arms planned, and a doubt about the others, if any.

    After a step with different outcomes, tables may have different contents, so later steps are excluded.
    """
    if reference.residue is None or suspect.residue is None:
        return [], lost_session(reference, suspect)
    ours, theirs = dict(plans(reference)), dict(plans(suspect))
    for step, (one, other) in enumerate(zip(reference.steps, suspect.steps, strict=True)):
        if (one.outcome, one.sqlstate) != (other.outcome, other.sqlstate):
            doubt = outcomes_doubt("a step ended otherwise", step, reference, suspect)
            return sorted(each for each in ours.keys() & theirs.keys() if each < step), doubt
    return sorted(ours.keys() & theirs.keys()), None


REPEATED: Final = Sample("repeated", 16)  # repetition takes many times as long as the case
REPEATS: Final = 6


def repeated_runs(case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
    """Return a repeated run on each arm if the case is in the sample."""
    return tuple(Run(arm, case.modes, REPEATS) for arm in arms) if case in REPEATED else ()
