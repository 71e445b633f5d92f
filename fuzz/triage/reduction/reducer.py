"""Reducer: the passes in order, repeated until none of them helps or the time is up."""

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
from fuzz.triage.reduction.problem import NotConfirmed, Problem, TimeUp
from fuzz.triage.sequential_test import CaseTest, Occurrence, SequentialTest
from oracles.model.case import Case

Pass = Callable[[Problem], None]

# Passes that make later tests cheaper come first: guesses, modes that repeat the case, then whole statements. Queries
# are cut before the objects that they use, and columns before lines of COPY, which get shorter. Literals come last,
# because each of them needs at least one test.
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


LONGER = 3  # factor of the time limit if each test needs many tries


class Uninteresting(CaseError):
    """Error: the case to reduce did not show its finding in `runs` runs."""

    def __init__(self, runs: int, replay: str) -> None:
        """`replay` is the command that replays the case."""
        super().__init__(
            f"the case did not show its finding again in {runs} runs, so it cannot be reduced; replay it: {replay}"
        )
        self.runs = runs


@dataclass(frozen=True, slots=True)
class SmallestCase:
    """The smallest case, and how often it showed the finding in its last runs."""

    case: Case
    occurrence: Occurrence


def reduce(
    case: Case,
    is_interesting: CaseTest,
    *,
    seconds: float,
    replay: str,
    fast_test: CaseTest | None = None,
    on_better: Callable[[Case], Any] = lambda better: None,
    passes: Sequence[Pass] = PASSES,
) -> SmallestCase:
    """Return the smallest interesting case found within `seconds`. `on_better` is called with each better one.

    A finding that does not always occur gets three times as long. Each measurement of its rate, and each test of the
    result, takes up to `seconds` more, and a measurement without any occurrence three times as long. `is_interesting`
    executes a case and returns whether it shows the finding. `fast_test` is a faster test that may return True wrongly.
    Raises Uninteresting if the case does not show the finding at the start; `replay` is the command that replays it.
    """
    test = SequentialTest(is_interesting, fast_test)
    occurrence = test.measure(case, seconds)
    if not occurrence.shown:
        raise Uninteresting(occurrence.runs, replay)
    limit = seconds * LONGER if test.depends_on_chance else seconds
    problem = Problem(case, test.shows, limit, on_better, test.passes_fast_test if fast_test else None)
    confirmed = case
    while True:
        with suppress(TimeUp):
            _until_nothing_helps(problem, passes)
        if problem.best != problem.confirmed and not test.shows(problem.best, seconds=seconds):
            problem.discard_unconfirmed()
        if problem.best == confirmed:
            return SmallestCase(confirmed, occurrence)
        guarded = test.depends_on_chance
        again = test.measure(problem.best, seconds)
        kept = again.shown > 0
        if not guarded and not again.always:  # so all steps were accepted or rejected after a single try
            test.remeasure(confirmed, seconds)
            kept = kept and test.shows(problem.best, seconds=seconds)
            problem.retry_rejected()
        if kept:
            confirmed, occurrence = problem.best, again
        else:
            problem.return_to(confirmed)


def _until_nothing_helps(problem: Problem, passes: Sequence[Pass]) -> None:
    before = None
    while problem.best != before:
        before = problem.best
        for a_pass in passes:
            try:
                a_pass(problem)
                problem.confirm()
            except NotConfirmed:
                _with_full_tests(a_pass, problem)


def _with_full_tests(a_pass: Pass, problem: Problem) -> None:
    """Repeat a pass with full tests."""
    problem.provisional = False
    try:
        a_pass(problem)
    finally:
        problem.provisional = True
