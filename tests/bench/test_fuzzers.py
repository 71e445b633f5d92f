"""Tests of `together`: the workers of one fuzzer."""

from threading import Event

import pytest

from fuzz.bench.fuzzers import together


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
