"""Plan: the user's options of a campaign, stored with it, so that resuming needs no options."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf

from fuzz.campaign.direction.discoveries import Discoveries
from fuzz.campaign.known import KnownFault
from fuzz.campaign.stop import REDUCING, REDUCTIONS, Limits
from fuzz.campaign.user_files import FileKind, UserFile
from fuzz.engines.engine import EngineName
from fuzz.servers.arm_options import ArmOptions
from fuzz.sources.source import UserInput


@dataclass(frozen=True, slots=True)
class Plan:
    """The cases of a campaign, and its limits."""

    seed: int
    generators: Mapping[str, int]  # weights by name, in their order; empty: those of a run without options
    minutes: float | None  # summed over all parts of a resumed campaign; None: unlimited
    cases: int | None
    stop_at_first: bool
    arms: ArmOptions
    given: UserInput = field(default_factory=UserInput)
    known: tuple[KnownFault, ...] = ()  # faults that are expected, and do not count as new findings
    left_out: Mapping[str, str] = field(default_factory=dict)  # sources that a run without options lacks → reason
    name: str = ""  # of the continuous campaign of which it is a run
    even: bool = False  # whether a run without options ignores which functions the patches change
    files: tuple[UserFile, ...] = ()  # the user's generators and oracles
    disk: float | None = None  # GB of all runs of a continuous campaign; None: the default
    notify: tuple[str, ...] = ()  # command that is called with the events of a continuous campaign
    engine: EngineName = EngineName.SEEDED
    reductions: int = REDUCTIONS  # limit of reduced findings
    discoveries: Discoveries = field(default_factory=Discoveries)  # of all earlier runs of a continuous campaign
    cpu_minutes: float | None = None  # of pgduel and the servers; None: unlimited
    # first case by generator, of a run that goes on where another one on its builds ended; without one, 0
    begin: Mapping[str, int] = field(default_factory=dict)
    first: Mapping[str, int] = field(default_factory=dict)  # numbers of cases by generator that precede all others

    @property
    def limits(self) -> Limits:
        """Return the limits of the campaign."""
        return Limits(
            _seconds(self.minutes),
            _seconds(self.cpu_minutes),
            at_first=self.stop_at_first,
            reductions=self.reductions,
            reducing=REDUCING if self.name else inf,
        )

    @property
    def judging(self) -> tuple[UserFile, ...]:
        """Return the files with oracles, which each replay of a finding needs."""
        return tuple(file for file in self.files if file.kind is FileKind.ORACLE)

    def replay_options(self) -> str:
        """Return the options with which `pgduel replay` judges a script again, each after a space."""
        return self.arms.command_line() + "".join(f" --oracle {shlex.quote(file.path)}" for file in self.judging)

    def extended(self, minutes: float | None, cases: int | None) -> "Plan":
        """Return the plan with other limits; None keeps a limit."""
        return replace(self, minutes=minutes or self.minutes, cases=cases or self.cases)


def _seconds(minutes: float | None) -> float | None:
    return None if minutes is None else minutes * 60
