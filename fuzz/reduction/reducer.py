"""Reducing: the order of the passes, until none of them helps or the time is up."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from math import ceil, log
from typing import Any

from fuzz.errors import CaseError
from fuzz.reduction.passes.drop_modes import drop_modes
from fuzz.reduction.passes.drop_settings import drop_settings
from fuzz.reduction.passes.drop_steps import drop_steps
from fuzz.reduction.passes.drop_tags import drop_tags
from fuzz.reduction.passes.shorten_copy_data import shorten_copy_data
from fuzz.reduction.passes.shorten_values import shorten_values
from fuzz.reduction.problem import Problem, Question, TimeUp
from oracles.case import Case

Pass = Callable[[Problem], None]

# What makes all later questions cheaper comes first: modes that repeat the case, then whole statements. Settings, of
# which there are many, and the data inside what is left come after. Rows of COPY come last: where their number matters,
# finding that none can go takes a question for each.
PASSES: tuple[Pass, ...] = (drop_tags, drop_modes, drop_steps, drop_settings, shorten_values, shorten_copy_data)


ASKED = 3  # times about the start, to see whether it always shows
ASKED_IN_VAIN = 6  # times about the start before it is refused
RISK = 0.05  # of taking what shows now and then for uninteresting
PATIENCE = 8  # times that a smaller case is tried at most


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
    patience = _patience(case, is_interesting, by_hand)
    problem = Problem(case, is_interesting, seconds, on_better, patience)
    with suppress(TimeUp):
        _until_nothing_helps(problem, passes)
    return problem.best


def _patience(case: Case, is_interesting: Question, by_hand: str) -> int:
    """Return how often to ask about a case, from how often the start shows its finding."""
    shown = [is_interesting(case) for _ in range(ASKED)]
    while not any(shown):
        if len(shown) == ASKED_IN_VAIN:
            raise Uninteresting(
                f"the case did not show its finding again in {len(shown)} runs, so it cannot be reduced; "
                f"look with: {by_hand}"
            )
        shown.append(is_interesting(case))
    rate = sum(shown) / len(shown)
    return 1 if rate == 1 else min(PATIENCE, ceil(log(RISK) / log(1 - rate)))


def _until_nothing_helps(problem: Problem, passes: Sequence[Pass]) -> None:
    before = None
    while problem.best != before:
        before = problem.best
        for a_pass in passes:
            a_pass(problem)
