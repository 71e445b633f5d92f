"""Verdicts on single runs, which several oracles share.

A finding is a fault that an observation shows by itself, in any run, with the arms that show it. An inconclusive
verdict has the step in question and both sides.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from oracles.framework.comparison import Comparison
from oracles.framework.difference_text import closing_text, ended
from oracles.model.finding import Finding, first_of_each, pairs_of
from oracles.model.observation import CaseObservation, Outcome, Run
from oracles.model.oracle import CONNECTION_LOST, Inconclusive, More, Observations


def outcomes_doubt(reason: str, step: int, ours: CaseObservation, theirs: CaseObservation) -> Inconclusive:
    """Return the doubt about a step that ended in these ways."""
    return Inconclusive(reason, step, (ended(ours.steps[step]), ended(theirs.steps[step])))


def obstacle_doubt(comparison: Comparison, ours: CaseObservation, theirs: CaseObservation) -> Inconclusive:
    """Return the doubt about the obstacle of a comparison."""
    if comparison.obstacle_at is not None:
        return outcomes_doubt(comparison.obstacle, comparison.obstacle_at, ours, theirs)
    if comparison.obstacle == CONNECTION_LOST:
        return lost_session(ours, theirs)
    return Inconclusive(comparison.obstacle, sides=(closing_text(ours), closing_text(theirs)))


def lost_session(*observed: CaseObservation, reason: str = CONNECTION_LOST) -> Inconclusive:
    """Return the doubt about a session that was lost in one of these runs; its step is None after the last one."""
    lost = ((step, each) for each in observed for step, seen in enumerate(each.steps) if seen.outcome is Outcome.LOST)
    found = next(lost, None)
    step, arm = (found[0], found[1].arm) if found else (None, next((e.arm for e in observed if e.residue is None), ""))
    how = ended(found[1].steps[found[0]]) if found else "lost after the last step"
    return Inconclusive(reason, step, ("the session continues", f"{arm}: {how}"))


_Fault = TypeVar("_Fault")
_Shown = dict[tuple[str, int | None], dict[str, _Fault]]  # (origin, step) -> arm -> fault


def findings_of_runs(
    arms: Sequence[str],
    observations: Observations,
    faults: Callable[[CaseObservation], Iterable[tuple[str, int | None, _Fault]]],
    finding_of: Callable[[tuple[str, str], str, _Fault], Finding],
) -> tuple[Finding, ...] | More:
    """Return a finding for each fingerprint, of the plainest run that shows it.

    `faults` returns the faults of an observation with their origins and steps; only the first one of each origin and
    step counts. Arms share a fault if they show it at the same step of the same run. So a run with a fault is requested
    on the arms that have not executed it. An arm that skipped the run, because it lacks its settings, shares the fault
    if it shows it at the same step of another run. `finding_of` returns the finding of a pair of arms (reference,
    suspect), an origin, and the suspect's fault.
    """
    if not any(True for observed in observations.values() for _ in faults(observed)):
        return ()  # most cases, and sorting takes time
    alike: dict[Run, dict[str, CaseObservation]] = defaultdict(dict)  # runs that differ in the arm only
    for run in sorted(observations, key=lambda run: (len(run.modes), run.repetition, run.repeats, repr(run))):
        alike[replace(run, arm="")][run.arm] = observations[run]
    findings: list[Finding] = []
    missing: dict[Run, None] = {}
    shown = {run: _shown(same_runs, faults) for run, same_runs in alike.items()}
    anywhere: _Shown[_Fault] = defaultdict(dict)  # the faults of the plainest run that shows them
    for shown_by_run in reversed(shown.values()):
        for place, examples in shown_by_run.items():
            anywhere[place] |= examples
    for run, same_runs in alike.items():
        if shown[run]:
            missing |= dict.fromkeys(replace(run, arm=arm) for arm in arms if arm not in same_runs)
        skipping = {arm for arm, observed in same_runs.items() if _is_skipped(observed)}
        for (origin, step), examples in shown[run].items():
            examples |= {arm: fault for arm, fault in anywhere[origin, step].items() if arm in skipping}
            findings += [finding_of(pair, origin, examples[pair[1]]) for pair in pairs_of(arms, examples)]
    if missing:
        return More(tuple(missing), frozenset(finding.symptom for finding in findings))
    return first_of_each(findings)


def _shown(
    same_runs: Mapping[str, CaseObservation],
    faults: Callable[[CaseObservation], Iterable[tuple[str, int | None, _Fault]]],
) -> _Shown[_Fault]:
    """Return the faults of a run on each arm."""
    shown: _Shown[_Fault] = defaultdict(dict)
    for arm, observed in same_runs.items():
        for origin, step, fault in faults(observed):
            shown[origin, step].setdefault(arm, fault)
    return shown


def _is_skipped(observed: CaseObservation) -> bool:
    return all(step.outcome is Outcome.SKIPPED for step in observed.steps)
