"""Leave out statements, of the scene and of the steps alike."""

from collections.abc import Iterable
from dataclasses import replace

from fuzz.reduction.deltas import least, shortest
from fuzz.reduction.problem import Problem
from oracles.case import Case, Kind


def drop_steps(problem: Problem) -> None:
    """Find a part of the statements of which none can be left out.

    Queries change nothing, so the first guess is that one shows it without the others: the last that has to be there.
    """
    start = problem.best
    end = least(0, len(start.all_steps), lambda end: problem.is_interesting(_with_only(start, range(end))))
    problem.is_interesting(_with_only(start, _without_other_queries(start, end)))
    shorter = problem.best
    shortest(range(len(shorter.all_steps)), lambda kept: problem.is_interesting(_with_only(shorter, kept)))


def _without_other_queries(case: Case, end: int) -> Iterable[int]:
    """Return the statements before `end` but the queries among them, except for the last of all."""
    return (index for index in range(end) if index == end - 1 or case.all_steps[index].kind is not Kind.QUERY)


def _with_only(case: Case, kept: Iterable[int]) -> Case:
    """Return the case with these of its statements, given in their order."""
    border = len(case.scene)
    indexes = tuple(kept)
    scene = tuple(case.all_steps[index] for index in indexes if index < border)
    steps = tuple(case.all_steps[index] for index in indexes if index >= border)
    return replace(case, scene=scene, steps=steps)
