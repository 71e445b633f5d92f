"""Leave out whole modes."""

from dataclasses import replace

from fuzz.reduction.deltas import shortest
from fuzz.reduction.problem import Problem


def drop_modes(problem: Problem) -> None:
    """Find the modes that matter. Some have a case run several times over: without them, all questions are cheaper."""
    start = problem.best
    shortest(start.modes, lambda kept: problem.is_interesting(replace(start, modes=kept)))
