"""Repetition: runs that execute a case several times in one session, which shows growth and memory freed too early."""

from collections.abc import Sequence
from typing import Final

from oracles.model.case import Case
from oracles.model.observation import Run
from oracles.model.sampling import Sample

REPEATED: Final = Sample("repeated", 16)  # repetition takes many times as long as the case
REPEATS: Final = 6


def repeated_runs(case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
    """Return a repeated run on each arm if the case is in the sample."""
    return tuple(Run(arm, case.modes, REPEATS) for arm in arms) if case in REPEATED else ()
