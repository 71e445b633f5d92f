"""Tests of the comparison of reducers: the first one's size over time, and the final sizes of the others."""

from collections.abc import Callable
from typing import ClassVar

import pytest

from fuzz.bench.reduction import comparison as module
from fuzz.bench.reduction.comparison import WHOLE, ReducerResult, comparison
from fuzz.bench.reduction.reducer import CountedTest, Reducer, Size, Task
from fuzz.errors import ServerError
from fuzz.report.comparison_tables import comparisons_json, print_comparisons
from fuzz.report.console import Console
from fuzz.triage.findings import StoredFinding
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Finding

CASE = Case("g", (Step("CREATE TABLE t (a int)"),), (Step("SELECT a FROM t", Kind.QUERY),))
FINDING = Finding("result", ("master", "patched"), "rows", 1, "", "", "")
TASK = Task(StoredFinding(FINDING, "1/g/0", CASE, 1, None, reduced=False), "", ())


class Named(Reducer):
    name: ClassVar[str] = "x"

    def reduce(self, task: Task, test: CountedTest) -> Case:
        return task.found.case


def size(characters: int) -> Size:
    return Size(1, characters, 1, 0)


def compared(monkeypatch: pytest.MonkeyPatch, *outcomes: Callable[[], ReducerResult]) -> list[ReducerResult]:
    results = iter(outcomes)
    monkeypatch.setattr(module, "_reduced", lambda task, reducer, seconds: next(results)())
    return comparison(TASK, [Named() for _ in outcomes], 60, print)


def refuse() -> ReducerResult:
    raise ServerError("gone")


def test_each_outcome_has_the_time_at_which_the_first_reducer_was_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    first = ReducerResult("pgduel", size(40), "", 9, 30.0, ((1.0, 400), (2.0, 90), (20.0, 40)))
    outcomes = compared(
        monkeypatch,
        lambda: first,
        lambda: ReducerResult("picire", size(90), "", 5, 10.0),
        lambda: ReducerResult("cvise", size(30), "", 5, 10.0),
        refuse,
    )
    assert [each.overtaken for each in outcomes] == [None, None, 2.0, None, None]
    assert (outcomes[0].name, outcomes[1], outcomes[4].why) == (WHOLE, first, "gone")


def test_the_table_has_medians_over_cases_that_both_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    comparisons = {
        str(seconds): compared(
            monkeypatch,
            lambda seconds=seconds: ReducerResult("pgduel", size(40), "", 9, 30.0, ((seconds, 40),)),  # type: ignore[misc]
            lambda: ReducerResult("picire", size(90), "", 5, 10.0),
        )
        for seconds in (1.0, 4.0, 6.0)
    }
    console = Console(width=200, record=True)
    print_comparisons(console, comparisons)
    last = console.export_text().splitlines()[-1].split()
    assert (last[0], last[-1]) == ("picire", "4.0")
    assert comparisons_json(comparisons)[0]["outcomes"][2]["overtaken"] == 1.0
