"""Reducing: the order of the passes, until none of them helps or the time is up."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from fuzz.errors import CaseError
from fuzz.reduction.passes.drop_modes import drop_modes
from fuzz.reduction.passes.drop_steps import drop_steps
from fuzz.reduction.passes.drop_tags import drop_tags
from fuzz.reduction.passes.shorten_copy_data import shorten_copy_data
from fuzz.reduction.passes.shorten_values import shorten_values
from fuzz.reduction.problem import Problem, Question, TimeUp
from oracles.case import Case

Pass = Callable[[Problem], None]

# Cheapest gain first: whole statements, then settings, then the data inside what is left. Rows of COPY come last: where
# their number matters, finding that none can go takes a question for each.
PASSES: tuple[Pass, ...] = (drop_tags, drop_steps, drop_modes, shorten_values, shorten_copy_data)


class Uninteresting(CaseError):
    """The case that should be reduced does not show its finding."""


def reduce(
    case: Case,
    is_interesting: Question,
    *,
    seconds: float,
    by_hand: str,
    on_better: Callable[[Case], Any] = lambda better: None,
    passes: Sequence[Pass] = PASSES,
) -> Case:
    """Return the smallest case found within `seconds` that is still interesting; each better one goes to `on_better`.

    `is_interesting` runs a case and says whether it shows the same finding; nothing else is known of findings here.
    Raises Uninteresting for a case that does not show it at the start; `by_hand` is the command to look with.
    """
    problem = Problem(case, is_interesting, seconds, on_better)
    if not problem.is_interesting(case):
        raise Uninteresting(f"the case does not show its finding again, so it cannot be reduced; look with: {by_hand}")
    with suppress(TimeUp):
        _until_nothing_helps(problem, passes)
    return problem.best


def _until_nothing_helps(problem: Problem, passes: Sequence[Pass]) -> None:
    before = None
    while problem.best != before:
        before = problem.best
        for a_pass in passes:
            a_pass(problem)
