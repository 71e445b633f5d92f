"""Sampling: which cases get an expensive look, told by their content alone, so that another run tells the same.

Repetition: some cases run several times over in one session, where what grows or is freed too early shows.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from oracles.model.case import Case
from oracles.model.mode import Mode
from oracles.model.observation import Run

REPEATS: Final = 6


def repeated_runs(case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
    """Return the repeating runs of a case: once on each arm, if the case is among those."""
    return tuple(Run(arm, case.modes, REPEATS) for arm in arms) if case in REPEATED else ()


BY_NAME: Final = Mode("sampled by name")  # content counts for nothing where a case is under this mode


@dataclass(frozen=True, slots=True)
class Sample:
    """One case in `share`, and any that asks for it by a mode of this name: a smaller case has other content."""

    name: str
    share: int

    @property
    def mode(self) -> Mode:
        """Return the mode that asks for the look whatever the content."""
        return Mode(self.name)

    @property
    def alone(self) -> "Sample":
        """Return all cases, for a single arm: there is little else to look at, and looks share one scene."""
        return replace(self, share=1)

    def __contains__(self, case: Case) -> bool:
        """Tell by the case's modes and content alone whether it is among them."""
        if self.mode in case.modes or BY_NAME in case.modes:
            return self.mode in case.modes
        content = repr([self.name, *((step.sql, step.copy_data, step.params) for step in case.all_steps)])
        return int.from_bytes(hashlib.sha256(content.encode()).digest()[:4], "big") % self.share == 0


REPEATED: Final = Sample("repeated", 16)  # repetition costs as much as the case, so many times over
EXPLAINED: Final = Sample("explained", 6)
REWRITTEN: Final = Sample("rewritten", 10)  # up to four runs of the case on each arm
PLANNED: Final = Sample("planned", 5)  # the scene, and plans of queries that are not run
PARTITIONED: Final = Sample("partitioned", 32)
FILTERED: Final = Sample("filtered", 32)
REPLANNED: Final = Sample("replanned", 40)  # one run for each kind of plan
TRANSFORMED: Final = Sample("transformed", 32)
FOLDED: Final = Sample("folded", 32)
PIVOTED: Final = Sample("pivoted", 32)
CHANGED: Final = Sample("changed", 32)
ESTIMATED: Final = Sample("estimated", 32)  # planned, not run, once or twice
REPORTED: Final = Sample("reported", 1)  # only what another program reports bears tags to look at
