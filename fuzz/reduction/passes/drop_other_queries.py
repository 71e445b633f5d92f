"""Leave out all queries but one: they change nothing, and are what a case takes most of its time for."""

from fuzz.reduction.deltas import least
from fuzz.reduction.problem import Problem
from fuzz.reduction.steps import with_only
from oracles.case import Kind


def drop_other_queries(problem: Problem) -> None:
    """Find where the case may end, and guess that what is there shows it without the queries before."""
    start = problem.best
    steps = start.all_steps
    if not steps:
        return
    end = least(0, len(steps), lambda end: problem.is_interesting(with_only(start, range(end))))
    others = (index for index in range(end - 1) if steps[index].kind is not Kind.QUERY)
    problem.is_interesting(with_only(start, (*others, end - 1)))
