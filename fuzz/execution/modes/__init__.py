"""The execution modes: constants in the files of this package, found by their type.

A generator names the suitable ones, and an engine selects from them. So a new mode changes no case of a generator that
does not name it.
"""

import sys
from collections.abc import Sequence
from typing import Final

from fuzz.errors import CaseError
from fuzz.execution.modes.queries import FORCED, forcing
from oracles.model.discovery import constants
from oracles.model.feature import Feature
from oracles.model.mode import Mode

MODES: Final = {mode.name: mode for mode in constants(Mode, sys.modules[__name__])}


def composed(entry: str, features: Sequence[Feature] = ()) -> tuple[Mode, ...]:
    """Return the modes whose names, joined by +, an entry has, for arms with these features. Raises CaseError."""
    return tuple(_mode(name, features) for name in entry.split("+"))


def _mode(name: str, features: Sequence[Feature]) -> Mode:
    if name not in MODES:
        raise CaseError(f"no mode is called {name!r}; give one of {', '.join(MODES)}")
    return forcing(features) if name == FORCED.name else MODES[name]
