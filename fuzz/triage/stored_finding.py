"""A finding as the store has it: with its case, its reproducer, and the results of its triage so far."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fuzz.triage.blame import Blame
from fuzz.triage.reduced_case import ReducedCase
from oracles.model.case import Case
from oracles.model.finding import Finding


@dataclass(frozen=True, slots=True)
class StoredFinding:
    """A finding with the first case that showed it, how many cases did, and its reproducer."""

    finding: Finding
    case_id: str
    case: Case
    count: int
    reproducer: Path | None  # None only where pgduel was killed before it was written
    reduced: bool
    smallest: ReducedCase | None = None  # so far, unless it is `reduced`
    blame: Blame | None = None
    seconds: float | None = None  # that its reduction took

    @property
    def least(self) -> ReducedCase:
        """Return the smallest case known: the whole one, in no run yet, where reduction found no other."""
        return self.smallest or ReducedCase(self.case, self.finding, 0, 0)

    @property
    def settled(self) -> bool:
        """Tell whether it was looked into to the end: reduced, and blamed, if it showed again for that."""
        return self.reduced and (self.blame is not None or not self.least.shown)


def unsettled(findings: Sequence[StoredFinding]) -> list[StoredFinding]:
    """Return the findings that a resumed campaign has to reduce or to blame yet."""
    return [found for found in findings if not found.settled]
