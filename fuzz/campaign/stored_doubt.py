"""A doubt: a verdict of inconclusive or unstable as the store has it, with its case."""

import hashlib
from dataclasses import dataclass, field

from oracles.model.case import Case
from oracles.model.oracle import Inconclusive, Unstable

KEPT = 10  # doubts of one oracle, kind and reason: more are counted only


@dataclass(frozen=True, slots=True)
class StoredDoubt:
    """A case that an oracle could not decide, with the step in question and both sides where the oracle gave them."""

    oracle: str
    kind: str  # inconclusive or unstable
    reason: str
    case_id: str
    case: Case
    step: int | None = None
    sides: tuple[str, str] = ("", "")
    outcome: str = field(default="", compare=False)  # of later tries; "" before them

    @property
    def name(self) -> str:
        """Return 12 hexadecimal digits that identify oracle, kind, reason and case."""
        text = "\0".join((self.oracle, self.kind, self.reason, self.case_id))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def doubt_of(oracle: str, verdict: Inconclusive | Unstable, case_id: str, case: Case) -> StoredDoubt:
    """Return the doubt of a verdict on a case."""
    kind = type(verdict).__name__.lower()
    return StoredDoubt(oracle, kind, verdict.reason, case_id, case, verdict.step, verdict.sides)
