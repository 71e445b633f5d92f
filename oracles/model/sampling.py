"""Samples: shares of cases that get expensive runs.

A case's content selects it, so another run selects the same cases. Repetition is one of these runs: it executes a case
several times in one session, which reveals growth and memory that is freed too early.
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
    """Return a repeated run of the case on each arm if the case is in the sample, else nothing."""
    return tuple(Run(arm, case.modes, REPEATS) for arm in arms) if case in REPEATED else ()


# under this mode a case is only in the samples that its modes name, whatever its content
BY_NAME: Final = Mode("sampled by name")


@dataclass(frozen=True, slots=True)
class Sample:
    """One case of every `share`, and each case that has a mode of this name.

    A case made by reduction needs the mode, because its content differs.
    """

    name: str
    share: int

    @property
    def mode(self) -> Mode:
        """Return the mode that puts a case in the sample, whatever its content."""
        return Mode(self.name)

    @property
    def alone(self) -> "Sample":
        """Return the sample of all cases, for a single arm: few oracles judge one, and the runs share one scene."""
        return replace(self, share=1)

    def __contains__(self, case: Case) -> bool:
        """Return whether a case is in the sample, by its modes and content alone."""
        if self.mode in case.modes or BY_NAME in case.modes:
            return self.mode in case.modes
        content = repr([self.name, *((step.sql, step.copy_data, step.params) for step in case.all_steps)])
        return int.from_bytes(hashlib.sha256(content.encode()).digest()[:4], "big") % self.share == 0


REPEATED: Final = Sample("repeated", 16)  # repetition takes many times as long as the case
EXPLAINED: Final = Sample("explained", 6)
REWRITTEN: Final = Sample("rewritten", 10)  # up to four runs of the case on each arm
PLANNED: Final = Sample("planned", 5)  # the scene, and plans of queries that are not executed
PARTITIONED: Final = Sample("partitioned", 32)
FILTERED: Final = Sample("filtered", 32)
REPLANNED: Final = Sample("replanned", 40)  # one run for each kind of plan
TRANSFORMED: Final = Sample("transformed", 32)
FOLDED: Final = Sample("folded", 32)
PIVOTED: Final = Sample("pivoted", 32)
CHANGED: Final = Sample("changed", 32)
ESTIMATED: Final = Sample("estimated", 32)  # planned once or twice, not executed
REPORTED: Final = Sample("reported", 1)  # all cases, because only reports of another fuzzer have the tags
