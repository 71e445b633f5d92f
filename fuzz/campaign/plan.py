"""Plan: what a campaign was asked to do. It is stored with the campaign, so that resuming needs no options."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from fuzz.campaign.stop import Limits
from fuzz.sources.context import UserInput


@dataclass(frozen=True, slots=True)
class Plan:
    """Which cases run, and until when. `arms` is the command line's own record of the arms asked for."""

    seed: int
    generators: tuple[str, ...]
    minutes: float | None  # over all parts of a campaign that was resumed; None: without end
    cases: int | None
    stop_at_first: bool
    arms: Mapping[str, Any]
    given: UserInput = field(default_factory=UserInput)

    @property
    def limits(self) -> Limits:
        """Return when the campaign ends."""
        return Limits(None if self.minutes is None else self.minutes * 60, at_first=self.stop_at_first)

    def extended(self, minutes: float | None, cases: int | None) -> "Plan":
        """Return the plan with other ends, where they are given."""
        return replace(self, minutes=minutes or self.minutes, cases=cases or self.cases)

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Plan":
        """Return the plan that `to_json` wrote."""
        given = UserInput(**data.get("given", {}))
        return cls(**{**data, "generators": tuple(data["generators"]), "given": given})
