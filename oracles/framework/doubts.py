"""Inconclusive verdicts on runs, with the step in question and both sides."""

from typing import Final

from oracles.framework.difference_text import ended
from oracles.model.observation import CaseObservation, Outcome
from oracles.model.oracle import Inconclusive

CONNECTION_LOST: Final = "connection lost"


def outcomes_doubt(reason: str, step: int, ours: CaseObservation, theirs: CaseObservation) -> Inconclusive:
    """Return the doubt about a step that ended in these ways."""
    return Inconclusive(reason, step, (ended(ours.steps[step]), ended(theirs.steps[step])))


def lost_session(*observed: CaseObservation, reason: str = CONNECTION_LOST) -> Inconclusive:
    """Return the doubt about a session that was lost in one of these runs; its step is None after the last one."""
    lost = ((step, each) for each in observed for step, seen in enumerate(each.steps) if seen.outcome is Outcome.LOST)
    found = next(lost, None)
    step, arm = (found[0], found[1].arm) if found else (None, next((e.arm for e in observed if e.residue is None), ""))
    how = ended(found[1].steps[found[0]]) if found else "lost after the last step"
    return Inconclusive(reason, step, ("the session continues", f"{arm}: {how}"))
