"""Reducing: the order of the passes, until none of them helps or the time is up."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fuzz.errors import CaseError
from fuzz.triage.reduction.passes.drop import (
    drop_columns,
    drop_modes,
    drop_other_queries,
    drop_settings,
    drop_steps,
    drop_tags,
)
from fuzz.triage.reduction.passes.prune import prune_commands, prune_queries
from fuzz.triage.reduction.passes.shorten import (
    shorten_all_series,
    shorten_copy_data,
    shorten_fields,
    shorten_literals,
    shorten_loops,
    shorten_series,
    shorten_values,
)
from fuzz.triage.reduction.problem import Deceived, Problem, TimeUp
from fuzz.triage.sequential_test import InterestingnessTest, Occurrence, SequentialTest
from oracles.model.case import Case

Pass = Callable[[Problem], None]

# What makes all later questions cheaper comes first: guesses, modes that repeat the case, then whole statements.
# Queries are cut before what they rest on, and columns before the lines of COPY, which they make long. Literals, of
# which each takes a question or more, come last.
PASSES: tuple[Pass, ...] = (
    drop_other_queries,
    shorten_all_series,
    shorten_loops,
    drop_modes,
    drop_steps,
    drop_tags,
    drop_settings,
    shorten_series,
    shorten_values,
    prune_queries,
    drop_columns,
    shorten_copy_data,
    prune_commands,
    shorten_literals,
    shorten_fields,
)


LONGER = 3  # times as long may reducing take where each question takes many tries


class Uninteresting(CaseError):
    """The case that should be reduced does not show its finding, in so many `runs`."""

    def __init__(self, runs: int, by_hand: str) -> None:
        """`by_hand` is the command to look with."""
        super().__init__(
            f"the case did not show its finding again in {runs} runs, so it cannot be reduced; look with: {by_hand}"
        )
        self.runs = runs


@dataclass(frozen=True, slots=True)
class Reduced:
    """The smallest case found, and how often it showed the finding when it was looked at last."""

    case: Case
    showing: Occurrence


def reduce(
    case: Case,
    is_interesting: InterestingnessTest,
    *,
    seconds: float,
    by_hand: str,
    seems: InterestingnessTest | None = None,
    on_better: Callable[[Case], Any] = lambda better: None,
    passes: Sequence[Pass] = PASSES,
) -> Reduced:
    """Return the smallest case found within `seconds` that is still interesting; each better one goes to `on_better`.

    What does not always show gets three times as long, and to look how often it shows, each time, `seconds` more.
    `is_interesting` runs a case and says whether it shows the same finding; nothing else is known of findings here.
    `seems` says in less time that it does not, or that it seems to.
    Raises Uninteresting for a case that does not show it at the start; `by_hand` is the command to look with.
    """
    patience = SequentialTest(is_interesting, seems)
    showing = patience.look(case, seconds)
    if not showing.shown:
        raise Uninteresting(showing.runs, by_hand)
    limit = seconds * LONGER if patience.wavers else seconds
    problem = Problem(case, patience.shows, limit, on_better, patience.seems if seems else None)
    sure = case
    while True:
        with suppress(TimeUp):
            _until_nothing_helps(problem, passes)
        if problem.best != problem.sure and not patience.shows(problem.best):
            problem.fall_back()
        if problem.best == sure:
            return Reduced(sure, showing)
        guarded = patience.wavers
        again = patience.look(problem.best, seconds)
        kept = again.shown > 0
        if not guarded and not again.always:  # so all steps were taken, or refused, at their first tries
            patience.learn(sure)
            kept = kept and patience.shows(problem.best)
            problem.forget()
        if kept:
            sure, showing = problem.best, again
        else:
            problem.return_to(sure)


def _until_nothing_helps(problem: Problem, passes: Sequence[Pass]) -> None:
    before = None
    while problem.best != before:
        before = problem.best
        for a_pass in passes:
            try:
                a_pass(problem)
                problem.settle()
            except Deceived:
                _closely(a_pass, problem)


def _closely(a_pass: Pass, problem: Problem) -> None:
    """Do a pass again, sure of each step."""
    problem.trusting = False
    try:
        a_pass(problem)
    finally:
        problem.trusting = True
