"""Conversion of cases of earlier versions, which stores and reproducers still contain, to the current form."""

import re
from dataclasses import replace
from typing import Final

from oracles.model.case import Case, SameRows, Step
from oracles.model.mode import Mode

# Modes without settings, for which cases and runs have fields today.
_SAMPLES: Final = frozenset(
    {
        *("repeated", "explained", "rewritten", "planned", "partitioned", "filtered", "replanned", "transformed"),
        *("folded", "pivoted", "changed", "estimated", "reported"),
    }
)
_OF_RUNS: Final = re.compile(r"sampled by name|again \d+|round \d+ of step \d+")

# Tags of a query with the same rows as the step before: in general, and because of the data of the tables.
_AS_BEFORE: Final = "as before"
_OF_THIS_SCENE: Final = "of this scene"


def current(case: Case) -> Case:
    """Return a case with fields for the modes and tags of earlier versions. A current case is returned unchanged."""
    samples = tuple(mode.name for mode in case.modes if _is_bare(mode) and mode.name in _SAMPLES)
    modes = tuple(mode for mode in case.modes if not (_is_bare(mode) and _was_a_flag(mode.name)))
    scene, steps = (tuple(map(_current_step, part)) for part in (case.scene, case.steps))
    return replace(case, scene=scene, steps=steps, modes=modes, samples=(*case.samples, *samples))


def _current_step(step: Step) -> Step:
    if _AS_BEFORE not in step.tags:
        return step
    tags = tuple(tag for tag in step.tags if tag not in (_AS_BEFORE, _OF_THIS_SCENE))
    return replace(
        step, tags=tags, same_rows=SameRows.BY_CONTENT if _OF_THIS_SCENE in step.tags else SameRows.BY_MEANING
    )


def _was_a_flag(name: str) -> bool:
    return name in _SAMPLES or _OF_RUNS.fullmatch(name) is not None


def _is_bare(mode: Mode) -> bool:
    return not mode.settings and mode.protocol is None
