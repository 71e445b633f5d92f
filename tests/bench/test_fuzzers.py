"""Fuzzers side by side: each has as many workers as there are processors."""

from threading import Event

import pytest

from fuzz.bench.fuzzers import together


def test_a_worker_that_fails_ends_all() -> None:
    told = []

    def work(worker: int, over: Event) -> None:
        if worker == 1:
            raise ZeroDivisionError
        told.append(over.wait(30))

    with pytest.raises(ZeroDivisionError):
        together(work, 3)
    assert told == [True, True]


def test_what_came_of_all_is_told() -> None:
    assert together(lambda worker, _: 2 * worker, 3) == [0, 2, 4]
