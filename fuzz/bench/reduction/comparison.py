"""A comparison of reducers: each reduces the same finding alone. Its result is measured, and tested again."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fuzz.bench.reduction.reducer import CountedTest, Reducer, Size, Task, size_of
from fuzz.errors import PgduelError
from fuzz.execution.executor import Executor
from fuzz.servers import Report
from fuzz.triage.interestingness import InterestingnessTest, QuestionTimeout
from fuzz.triage.sequential_test import CERTAIN_TRIES

WHOLE = "the whole case"


@dataclass(frozen=True, slots=True)
class ReducerResult:
    """The result of a reducer: the size of the reduced case, or None with `why` it could not run or lost the finding.

    `overtaken` is the time in seconds until the first reducer had a result of at most this size; None if it never had.
    """

    name: str
    size: Size | None
    why: str = ""
    tries: int = 0
    seconds: float = 0.0
    progress: tuple[tuple[float, int], ...] = ()  # (seconds, characters of the smallest case so far)
    overtaken: float | None = None


def comparison(task: Task, reducers: Sequence[Reducer], seconds: float, report: Report) -> list[ReducerResult]:
    """Reduce a finding by all reducers, at most `seconds` each. The first outcome is the whole case."""
    outcomes = [ReducerResult(WHOLE, size_of(task.found.case, task.found.finding.step))]
    for reducer in reducers:
        if why := reducer.lacks() or reducer.unfit(task):
            outcomes.append(ReducerResult(reducer.name, None, why))
            continue
        report(f"{task.found.finding.fingerprint}: {reducer.name} reduces")
        try:
            outcomes.append(_reduced(task, reducer, seconds))
        except PgduelError as error:
            outcomes.append(ReducerResult(reducer.name, None, str(error)))
    whole, first, *others = outcomes
    return [whole, first, *(replace(other, overtaken=_overtaken(first, other)) for other in others)]


def _overtaken(first: ReducerResult, other: ReducerResult) -> float | None:
    """Return the time until the first reducer had at most as many characters as the other one's result."""
    left = other.size.characters if other.size else 0
    return next((seconds for seconds, characters in first.progress if characters <= left), None)


def _reduced(task: Task, reducer: Reducer, seconds: float) -> ReducerResult:
    """Reduce the finding by a reducer. The finding must show before and after. Raises PgduelError."""
    limit = QuestionTimeout()
    with Executor(task.arms, "comparison", stop=limit.passed) as executor:
        interestingness = InterestingnessTest(executor, limit, task.arms, task.found.case, task.found.finding)
        if not interestingness.shows(interestingness.whole):
            return ReducerResult(reducer.name, None, "the finding did not show again")
        test = CountedTest(interestingness, seconds)
        began = time.monotonic()
        left = reducer.reduce(task, test)
        spent = time.monotonic() - began
        shows = any(interestingness.shows(left) for _ in range(CERTAIN_TRIES))
        size = size_of(left, interestingness.shown[left].step) if shows else None
        return ReducerResult(
            reducer.name,
            size,
            "" if shows else "its result does not show the finding",
            test.tries,
            spent,
            tuple(test.progress),
        )
