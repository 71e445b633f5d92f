"""Leave out statements, of the scene and of the steps alike."""

from fuzz.reduction.deltas import shortest
from fuzz.reduction.problem import Problem
from fuzz.reduction.steps import with_only


def drop_steps(problem: Problem) -> None:
    """Find a part of the statements of which none can be left out."""
    start = problem.best
    shortest(range(len(start.all_steps)), lambda kept: problem.is_interesting(with_only(start, kept)))
