"""What is known of a finding once it was looked into: the smallest case that shows it, and how often that does."""

from dataclasses import dataclass

from oracles.model.case import Case
from oracles.model.finding import Finding


@dataclass(frozen=True, slots=True)
class ReducedCase:
    """What reduction left, and what that shows in so many runs of it; the whole case where it never showed again."""

    case: Case
    finding: Finding
    shown: int
    runs: int

    @property
    def always(self) -> bool:
        """Tell whether it showed in all runs."""
        return self.shown == self.runs

    @property
    def how_often(self) -> str:
        """Say how often it showed."""
        if not self.shown:
            return f"did not show again in {self.runs} runs"
        return f"shows in {self.shown} of {self.runs} runs"
