"""A finding in the store, with its case, its reproducer, and the results of its triage so far."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fuzz.triage.blame import UPSTREAM, Blame
from fuzz.triage.reduced_case import ReducedCase
from oracles.model.case import Case
from oracles.model.finding import Finding


@dataclass(frozen=True, slots=True)
class StoredFinding:
    """A finding with the first case that showed it, the number of such cases, and its reproducer."""

    finding: Finding
    case_id: str
    case: Case
    count: int
    reproducer: Path | None  # None only if pgduel was killed before it was written
    reduced: bool
    smallest: ReducedCase | None = None  # the smallest so far, unless `reduced`
    blame: Blame | None = None
    seconds: float | None = None  # duration of its reduction

    @property
    def least(self) -> ReducedCase:
        """Return the smallest known case; without one, the whole case with 0 runs."""
        return self.smallest or ReducedCase(self.case, self.finding, 0, 0)

    @property
    def triaged(self) -> bool:
        """Return whether its triage is complete: reduced and, if it occurred again, blamed."""
        return self.reduced and (self.blame is not None or not self.least.shown)

    @property
    def blamed_on_base(self) -> bool:
        """Return whether the base without any patch shows it."""
        return self.blame is not None and self.blame.key == UPSTREAM


def untriaged(findings: Sequence[StoredFinding]) -> list[StoredFinding]:
    """Return the findings that a resumed campaign must still reduce or blame."""
    return [found for found in findings if not found.triaged]
