"""Contests of reducers: what the first had left when, beside what each other has left in the end."""

from collections.abc import Callable
from typing import ClassVar

import pytest

from fuzz.bench.reduction import comparison as module
from fuzz.bench.reduction.comparison import WHOLE, Outcome, comparison
from fuzz.bench.reduction.reducer import Asked, Reducer, Task
from fuzz.bench.reduction.size import Size
from fuzz.errors import ServerError
from fuzz.report.console import Console
from fuzz.report.reducers_table import contests_json, print_contests
from fuzz.triage.stored_finding import StoredFinding
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Finding

CASE = Case("g", (Step("CREATE TABLE t (a int)"),), (Step("SELECT a FROM t", Kind.QUERY),))
FINDING = Finding("result", ("master", "patched"), "rows", 1, "", "", "")
TASK = Task(StoredFinding(FINDING, "1/g/0", CASE, 1, None, reduced=False), "", ())


class Named(Reducer):
    name: ClassVar[str] = "x"

    def reduce(self, task: Task, asked: Asked) -> Case:
        return task.found.case


def size(characters: int) -> Size:
    return Size(1, characters, 1, 0)


def held(monkeypatch: pytest.MonkeyPatch, *came: Callable[[], Outcome]) -> list[Outcome]:
    results = iter(came)
    monkeypatch.setattr(module, "_reduced", lambda task, reducer, seconds: next(results)())
    return comparison(TASK, [Named() for _ in came], 60, print)


def refuse() -> Outcome:
    raise ServerError("gone")


def test_each_is_told_when_the_first_had_no_more_left(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Outcome("pgduel", size(40), "", 9, 30.0, ((1.0, 400), (2.0, 90), (20.0, 40)))
    outcomes = held(
        monkeypatch,
        lambda: first,
        lambda: Outcome("picire", size(90), "", 5, 10.0),
        lambda: Outcome("cvise", size(30), "", 5, 10.0),
        refuse,
    )
    assert [each.overtaken for each in outcomes] == [None, None, 2.0, None, None]
    assert (outcomes[0].name, outcomes[1], outcomes[4].why) == (WHOLE, first, "gone")


def test_the_table_tells_medians_of_what_both_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    contests = {
        str(seconds): held(
            monkeypatch,
            lambda seconds=seconds: Outcome("pgduel", size(40), "", 9, 30.0, ((seconds, 40),)),  # type: ignore[misc]
            lambda: Outcome("picire", size(90), "", 5, 10.0),
        )
        for seconds in (1.0, 4.0, 6.0)
    }
    console = Console(width=200, record=True)
    print_contests(console, contests)
    last = console.export_text().splitlines()[-1].split()
    assert (last[0], last[-1]) == ("picire", "4.0")
    assert contests_json(contests)[0]["outcomes"][2]["overtaken"] == 1.0
