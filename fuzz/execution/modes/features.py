"""The mode that forces the features of the arms' patches."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from oracles.model.feature import Feature, forced_settings
from oracles.model.mode import Mode

FORCED: Final = Mode("features_forced", optional=True)  # without settings, because arms have different features


def forcing(features: Sequence[Feature]) -> Mode:
    """Return the mode with the settings that force these features."""
    return replace(FORCED, settings=forced_settings(features))
