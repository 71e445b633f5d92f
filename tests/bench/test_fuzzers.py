"""Tests of the comparison of fuzzers without servers: workers of one fuzzer, and the table."""

from threading import Event

import pytest

from fuzz.bench.fuzzers import Figures, together
from fuzz.report.comparison_tables import print_figures
from fuzz.report.console import Console


def test_a_worker_that_fails_ends_all() -> None:
    ended = []

    def work(worker: int, over: Event) -> None:
        if worker == 1:
            raise ZeroDivisionError
        ended.append(over.wait(30))

    with pytest.raises(ZeroDivisionError):
        together(work, 3)
    assert ended == [True, True]


def test_results_of_all_workers_are_returned() -> None:
    assert together(lambda worker, _: 2 * worker, 3) == [0, 2, 4]


def test_several_rounds_are_shown_as_means_with_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    rounds = [Figures("pgduel", 10, judged, 1000, 0, 40, {}) for judged in (3000, 3100, 3200)]
    print_figures(Console(), {"pgduel": rounds, "sqlsmith": [Figures("sqlsmith", 10, 0, 300, 100, 7, {})]})
    output = capsys.readouterr().out
    assert "310 ± 25" in output  # 4.303 * 10 / sqrt(3)
    assert "100.0 ± 0.0" in output
    assert "75.0" in output
