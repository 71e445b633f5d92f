"""A comparison of reducers: each reduces the same finding alone. What it leaves is measured, and tried again."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fuzz.bench.reduction.reducer import Asked, Reducer, Task
from fuzz.bench.reduction.size import Size, size_of
from fuzz.errors import PgduelError
from fuzz.execution.executor import Executor
from fuzz.servers import Report
from fuzz.triage.interestingness import InterestingnessTest
from fuzz.triage.question_timeout import QuestionTimeout
from fuzz.triage.sequential_test import CERTAIN_TRIES

WHOLE = "the whole case"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a reducer came to: the size of what is left, or None and `why` it could not try or lost the finding.

    `overtaken` is after how many seconds the first reducer had less, or as much, left; None where it never had.
    """

    name: str
    size: Size | None
    why: str = ""
    tries: int = 0
    seconds: float = 0.0
    progress: tuple[tuple[float, int], ...] = ()  # seconds, characters of what was the smallest by then
    overtaken: float | None = None


def comparison(task: Task, reducers: Sequence[Reducer], seconds: float, report: Report) -> list[Outcome]:
    """Let all reducers reduce a finding, so many seconds at most each; the first outcome is the whole case's."""
    outcomes = [Outcome(WHOLE, size_of(task.found.case, task.found.finding.step))]
    for reducer in reducers:
        if why := reducer.lacks() or reducer.unfit(task):
            outcomes.append(Outcome(reducer.name, None, why))
            continue
        report(f"{task.found.finding.fingerprint}: {reducer.name} reduces")
        try:
            outcomes.append(_reduced(task, reducer, seconds))
        except PgduelError as error:
            outcomes.append(Outcome(reducer.name, None, str(error)))
    whole, first, *others = outcomes
    return [whole, first, *(replace(other, overtaken=_overtaken(first, other)) for other in others)]


def _overtaken(first: Outcome, other: Outcome) -> float | None:
    """Return when the first had at most as many characters left as the other has in the end."""
    left = other.size.characters if other.size else 0
    return next((seconds for seconds, characters in first.progress if characters <= left), None)


def _reduced(task: Task, reducer: Reducer, seconds: float) -> Outcome:
    """Let a reducer reduce the finding, which must show before and after. Raises PgduelError."""
    limit = QuestionTimeout()
    with Executor(task.arms, "comparison", stop=limit.passed) as executor:
        question = InterestingnessTest(executor, limit, task.arms, task.found.case, task.found.finding)
        if not question.shows(question.whole):
            return Outcome(reducer.name, None, "the finding did not show again")
        asked = Asked(question, seconds)
        began = time.monotonic()
        left = reducer.reduce(task, asked)
        spent = time.monotonic() - began
        shows = any(question.shows(left) for _ in range(CERTAIN_TRIES))
        size = size_of(left, question.shown[left].step) if shows else None
        return Outcome(
            reducer.name,
            size,
            "" if shows else "what it left does not show it",
            asked.tries,
            spent,
            tuple(asked.progress),
        )
