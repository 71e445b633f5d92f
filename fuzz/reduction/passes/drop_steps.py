"""Leave out statements, of the scene and of the steps alike."""

from dataclasses import replace

from fuzz.reduction.deltas import shortest
from fuzz.reduction.problem import Problem
from oracles.case import Case


def drop_steps(problem: Problem) -> None:
    """Find a part of the statements of which none can be left out."""
    start = problem.best

    def rebuilt(kept: tuple[int, ...]) -> Case:
        border = len(start.scene)
        scene = tuple(start.all_steps[index] for index in kept if index < border)
        steps = tuple(start.all_steps[index] for index in kept if index >= border)
        return replace(start, scene=scene, steps=steps)

    shortest(range(len(start.all_steps)), lambda kept: problem.is_interesting(rebuilt(kept)))
