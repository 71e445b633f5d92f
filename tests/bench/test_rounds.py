"""Tests of rounds: their limits of number, width and time, interrupts, and measurements that are kept."""

import random
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fuzz.bench.copying import CopyBench
from fuzz.bench.kept_visits import kept_measurements
from fuzz.bench.run import LEAST_ROUNDS, Limits, Measurements, Visit, measure_rounds
from fuzz.errors import StorageError

POINTS = [(1,), (2,)]
ARMS = ("one", "two")
VISIT = Visit((10, 1), {"one": 1.0, "two": 2.0}, 0.5)


def steady(_round: int, _point: tuple[int, ...], _arm: str) -> float:
    return 1.0


def test_a_point_with_a_narrow_interval_gets_no_more_rounds() -> None:
    rng, taken = random.Random(1), Measurements()

    def measure(_round: int, point: tuple[int, ...], _arm: str) -> float:
        return 1.0 if point == (1,) else rng.uniform(1, 2)

    measure_rounds(POINTS, ARMS, Limits(40, time.monotonic() + 600), taken, measure)
    assert (taken.rounds((1,)), taken.rounds((2,))) == (LEAST_ROUNDS, 40)


def test_without_a_limit_of_time_all_points_have_all_rounds() -> None:
    taken = Measurements()
    measure_rounds(POINTS, ARMS, Limits(9), taken, steady)
    assert [taken.rounds(point) for point in POINTS] == [9, 9]


def test_each_point_has_three_rounds_even_without_time() -> None:
    taken = Measurements()
    measure_rounds(POINTS, ARMS, Limits(9, time.monotonic() - 1), taken, steady)
    assert [taken.rounds(point) for point in POINTS] == [3, 3]


def test_a_round_that_does_not_fit_is_not_begun() -> None:
    taken = Measurements([Visit((1,), {"one": 1.0, "two": 1.0}, 3600.0)] * 3)
    measure_rounds([(1,)], ARMS, Limits(9, time.monotonic() + 60), taken, steady)
    assert taken.rounds((1,)) == 3


def test_an_interrupt_drops_the_unfinished_visit_only() -> None:
    measured: list[str] = []

    def measure(_round: int, _point: tuple[int, ...], arm: str) -> float:
        measured.append(arm)
        return 1.0

    taken = Measurements()
    measure_rounds([(1,)], ARMS, Limits(9, interrupted=lambda: len(measured) == 5), taken, measure)
    assert {arm: len(taken.samples[(1,), arm]) for arm in ARMS} == {"one": 2, "two": 2}


def test_a_run_continues_with_the_rounds_that_are_missing() -> None:
    taken = Measurements([Visit((1,), {"one": 1.0, "two": 1.0}, 1.0)] * 2)
    assert taken.seconds_left([(1,)], 4) == 2
    numbers: list[int] = []

    def measure(number: int, _point: tuple[int, ...], _arm: str) -> float:
        numbers.append(number)
        return 1.0

    measure_rounds(POINTS, ARMS, Limits(3), taken, measure)
    assert [taken.rounds(point) for point in POINTS] == [3, 3]
    assert numbers == [0, 0, 1, 1, 2, 2, 2, 2]


@contextmanager
def kept(*, resume: bool) -> Iterator[Measurements]:
    with kept_measurements(CopyBench(), (), [(10, 1)], 1, resume=resume) as taken:
        yield taken


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PGDUEL_CAMPAIGNS", str(tmp_path))
    return tmp_path / "benches"


def test_kept_visits_are_those_of_the_last_run(directory: Path) -> None:
    with kept(resume=False) as taken:
        taken.add(VISIT)
        taken.add(VISIT)
    (file,) = directory.glob("copy-*.jsonl")
    file.write_text(file.read_text() + '{"point": [10')  # the process was killed
    with kept(resume=True) as taken:
        assert taken.rounds((10, 1)) == 2
        taken.add(VISIT)
    with kept(resume=True) as taken:
        assert taken.samples[(10, 1), "two"] == [2.0, 2.0, 2.0]
    with kept(resume=False) as taken:
        assert taken.samples == {}


@pytest.mark.usefixtures("directory")
def test_a_disk_without_room_costs_no_kept_visit() -> None:
    with kept(resume=False) as taken:
        taken.add(VISIT)
    with small_files(), pytest.raises(StorageError), kept(resume=True):
        pass
    with kept(resume=True) as taken:
        assert taken.rounds((10, 1)) == 1


@contextmanager
def small_files() -> Iterator[None]:
    """Refuse to write to files, as a full disk does."""
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)


@pytest.mark.usefixtures("directory")
def test_two_processes_do_not_measure_the_same() -> None:
    with kept(resume=False), pytest.raises(StorageError, match="another process measures this"), kept(resume=True):
        pass
