"""Changing one step of a case, for passes that work inside a step."""

from dataclasses import replace

from oracles.case import Case, Step


def with_step(case: Case, position: int, step: Step) -> Case:
    """Return the case with the step at `position` of `case.all_steps` exchanged."""
    steps = (*case.all_steps[:position], step, *case.all_steps[position + 1 :])
    border = len(case.scene)
    return replace(case, scene=steps[:border], steps=steps[border:])
