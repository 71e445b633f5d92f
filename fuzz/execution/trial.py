"""Trial: one plain run of a case on one arm, which takes a small part of the time that all runs of all oracles take.

An engine tries many cases, and has those judged that reach new code. A trial compares no arms, so it shows few wrong
results. It is *conspicuous* if the arm shows a fault by itself: an unexpected error, a time limit, a lost connection,
or a fault or doubt of an oracle that needs no other run.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fuzz.execution.judging import Assignment, Observer
from oracles.model.case import Case
from oracles.model.observation import CaseObservation, Outcome, Run
from oracles.model.oracle import Agree, NotApplicable, Observations

_WITHOUT_FAULT: Final = (Outcome.OK, Outcome.TOO_LARGE)


def tried(executor: Observer, case: Case, arm: str, alone: Sequence[Assignment]) -> Observations:
    """Execute a case once on an arm, and return the observation if it is conspicuous, or else nothing.

    `alone` are the assignments for this arm alone. Raises ServerError, Abandoned.
    """
    run = Run(arm, case.modes)
    observations = executor.observe(case, [run])
    conspicuous = _is_conspicuous(case, observations[run]) or _is_doubted(case, observations, alone)
    return observations if conspicuous else {}


def _is_conspicuous(case: Case, seen: CaseObservation) -> bool:
    """Return whether a statement was lost, met a time limit, or failed unexpectedly."""
    return any(
        step.outcome not in _WITHOUT_FAULT and not (step.outcome is Outcome.ERROR and given.may_fail)
        for given, step in zip(case.all_steps, seen.steps, strict=True)
    )


def _is_doubted(case: Case, observations: Observations, alone: Sequence[Assignment]) -> bool:
    """Return whether an oracle that needs no other run finds or doubts something.

    Oracles need fewer runs of a case that is in none of their samples.
    """
    unsampled = replace(case, samples=(), sampled_by_content=False)
    return any(
        not _is_clean(assignment, unsampled, observations)
        for assignment in alone
        if not assignment.oracle.judges_own_runs
    )


def _is_clean(assignment: Assignment, case: Case, observations: Observations) -> bool:
    try:
        if not observations.keys() >= set(assignment.oracle.runs(case, assignment.arms)):
            return True
        given = assignment.oracle.judge(case, assignment.arms, observations)
    except Exception:  # of an oracle that a user wrote, for example; the judgement of the case reports it
        return False
    return isinstance(given, tuple) and all(isinstance(verdict, Agree | NotApplicable) for verdict in given)
