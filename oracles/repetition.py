"""Repetition: some cases run several times over in one session, where what grows or is freed too early shows."""

import hashlib
from collections.abc import Sequence
from typing import Final

from oracles.case import Case
from oracles.mode import Mode
from oracles.observation import Run

REPEATS: Final = 6
SHARE: Final = 16  # one case in so many: repetition costs as much as the case, so many times over
REPEATED: Final = Mode("repeated")  # asks for repetition whatever the content: a smaller case has another one


def is_repeated(case: Case) -> bool:
    """Tell by the case's modes and content alone whether it is among those to repeat."""
    if REPEATED in case.modes:
        return True
    content = repr([(step.sql, step.copy_data, step.params) for step in case.all_steps])
    return hashlib.sha256(content.encode()).digest()[0] % SHARE == 0


def repeated_runs(case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
    """Return the repeating runs of a case: once on each arm, if the case is among those."""
    return tuple(Run(arm, case.modes, REPEATS) for arm in arms) if is_repeated(case) else ()
