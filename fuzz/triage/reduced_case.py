"""The result of reducing a finding: the smallest case that shows it, and how often it does."""

from dataclasses import dataclass

from oracles.model.case import Case
from oracles.model.finding import Finding


@dataclass(frozen=True, slots=True)
class ReducedCase:
    """A reduced case, its finding, and in how many runs it occurred; the whole case if it never occurred again."""

    case: Case
    finding: Finding
    shown: int
    runs: int

    @property
    def always(self) -> bool:
        """Return whether the finding occurred in all runs."""
        return self.shown == self.runs

    @property
    def how_often(self) -> str:
        """Return a text with the number of runs in which the finding occurred."""
        if not self.shown:
            return f"did not show again in {self.runs} runs"
        return f"shows in {self.shown} of {self.runs} runs"
