"""Repetition: some cases run several times over in one session, where what grows or is freed too early shows."""

from collections.abc import Sequence
from typing import Final

from oracles.case import Case
from oracles.observation import Run
from oracles.sampling import REPEATED

REPEATS: Final = 6


def repeated_runs(case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
    """Return the repeating runs of a case: once on each arm, if the case is among those."""
    return tuple(Run(arm, case.modes, REPEATS) for arm in arms) if case in REPEATED else ()
