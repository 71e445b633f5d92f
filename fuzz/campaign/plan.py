"""Plan: what a campaign was asked to do. It is stored with the campaign, so that resuming needs no options."""

from dataclasses import dataclass, field, replace

from fuzz.campaign.stop import Limits
from fuzz.servers.arm_options import ArmOptions
from fuzz.sources.context import UserInput


@dataclass(frozen=True, slots=True)
class Plan:
    """Which cases run, and until when."""

    seed: int
    generators: tuple[str, ...]
    minutes: float | None  # over all parts of a campaign that was resumed; None: without end
    cases: int | None
    stop_at_first: bool
    arms: ArmOptions
    given: UserInput = field(default_factory=UserInput)

    @property
    def limits(self) -> Limits:
        """Return when the campaign ends."""
        return Limits(None if self.minutes is None else self.minutes * 60, at_first=self.stop_at_first)

    def extended(self, minutes: float | None, cases: int | None) -> "Plan":
        """Return the plan with other ends, where they are given."""
        return replace(self, minutes=minutes or self.minutes, cases=cases or self.cases)
