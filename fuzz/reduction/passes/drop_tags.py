"""Leave out the names of workload paths: they were counted when the case ran first, and only clutter a reproducer."""

from dataclasses import replace

from fuzz.reduction.problem import Problem


def drop_tags(problem: Problem) -> None:
    """Take all tags off at once."""
    case = problem.best
    scene, steps = (tuple(replace(step, tags=()) for step in part) for part in (case.scene, case.steps))
    problem.is_interesting(replace(case, scene=scene, steps=steps))
