"""Cases of earlier versions in the current form: stores and reproducers still hold them."""

import re
from dataclasses import replace
from typing import Final

from oracles.model.case import Case
from oracles.model.mode import Mode

# Modes without settings, which stood for what fields of cases and runs say today.
_SAMPLES: Final = frozenset(
    {
        *("repeated", "explained", "rewritten", "planned", "partitioned", "filtered", "replanned", "transformed"),
        *("folded", "pivoted", "changed", "estimated", "reported"),
    }
)
_OF_RUNS: Final = re.compile(r"sampled by name|again \d+|round \d+ of step \d+")


def current(case: Case) -> Case:
    """Return a case with fields in place of the modes that earlier versions had; a current case as it is."""
    samples = tuple(mode.name for mode in case.modes if _is_bare(mode) and mode.name in _SAMPLES)
    modes = tuple(mode for mode in case.modes if not (_is_bare(mode) and _was_a_flag(mode.name)))
    return replace(case, modes=modes, samples=(*case.samples, *samples))


def _was_a_flag(name: str) -> bool:
    return name in _SAMPLES or _OF_RUNS.fullmatch(name) is not None


def _is_bare(mode: Mode) -> bool:
    return not mode.settings and mode.protocol is None
