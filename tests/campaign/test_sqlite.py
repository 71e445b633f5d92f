"""Tests of stores in SQLite that many processes use: they write in turn, and outlast programs that lock the file."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fuzz.campaign import sqlite
from fuzz.campaign.plan import Plan
from fuzz.campaign.schema import StoreBusy, StoreError
from fuzz.campaign.sqlite import FILE
from fuzz.campaign.store import Store, StoredDoubt
from fuzz.servers.arm_options import ArmOptions
from oracles.model.case import Case, Step
from oracles.model.finding import Finding
from tests.forking import FORKING

PLAN = Plan(1, {"x": 1}, None, None, stop_at_first=False, arms=ArmOptions())
CASE = Case("x", (Step("CREATE TABLE t (a int)"),), ())
FINDING = Finding("result", ("a", "b"), "rows", None, "rows differ", "", "")
SHORT = 0.1  # seconds
PROCESSES, ROUNDS = 12, 3


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path)) as opened:
        opened.begin(PLAN, {})
        yield opened


def _begin(directory: Path) -> None:
    with closing(Store(directory)) as store:
        store.begin(PLAN, {})


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Lock a store, as another program does."""
    with closing(sqlite3.connect(directory / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def _write(directory: Path, number: int) -> None:
    """Store findings and doubts; wait for no lock of SQLite, and print no line."""
    sqlite._TIMEOUT = SHORT  # type: ignore[misc]
    with closing(Store(directory, lambda _: None)) as store:
        for each in range(ROUNDS):
            store.add_finding(FINDING, f"{number}/x/{each}", CASE)
            store.add_finding(replace(FINDING, origin=str(number)), f"{number}/x/{each}", CASE)
            store.add_doubt(StoredDoubt("result", "unstable", str(number), f"{number}/x/{each}", CASE))


def test_nothing_is_lost_if_many_processes_write_at_the_same_time(store: Store) -> None:
    processes = [FORKING.Process(target=_write, args=(store.directory, number)) for number in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    counts = {found.finding.origin: found.count for found in store.findings()}
    assert counts == {"rows": PROCESSES * ROUNDS} | {str(number): ROUNDS for number in range(PROCESSES)}
    assert len(store.doubts()) == PROCESSES * ROUNDS


def test_one_process_at_a_time_runs_a_campaign(store: Store) -> None:
    with ProcessPoolExecutor(1, FORKING) as others:
        with pytest.raises(StoreError, match=r"^campaign .* runs already; stop it first$"):
            others.submit(_begin, store.directory).result()
        store.close()
        others.submit(_begin, store.directory).result()


def test_processes_write_in_the_order_in_which_they_wait(store: Store) -> None:
    def add(number: int) -> None:
        with closing(Store(store.directory)) as own:
            own.add_finding(replace(FINDING, origin=str(number)), f"1/x/{number}", CASE)

    with ThreadPoolExecutor(8) as pool, store._database.begin():
        for number in range(8):
            pool.submit(add, number)
            while _waiting() <= number:
                time.sleep(0.01)
    assert [found.finding.origin for found in store.findings()] == [str(number) for number in range(8)]


def _waiting() -> int:
    """Return the number of locks for which this process waits."""
    lines = (line.split() for line in Path("/proc/locks").read_text().splitlines())
    return sum(words[1:3] == ["->", "FLOCK"] and words[5] == str(os.getpid()) for words in lines)


def test_a_finding_outlasts_a_program_that_locks_the_store(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_TIMEOUT", SHORT)
    lines: list[str] = []
    told = threading.Event()

    def say(line: str) -> None:
        lines.append(line)
        told.set()

    def add() -> bool:
        with closing(Store(store.directory, say)) as own:
            return own.add_finding(FINDING, "1/x/0", CASE)

    with ThreadPoolExecutor(1) as pool, _locked(store.directory):
        added = pool.submit(add)
        assert told.wait(60)
        assert not added.done()
    assert added.result()
    assert [found.finding for found in store.findings()] == [FINDING]
    busy = f"the store {store.directory / FILE} is busy: another process uses it (database is locked); end that"
    assert lines == [f"{busy}; trying again for 10 minutes", "the store answers again"]


def test_a_process_that_waited_too_long_keeps_its_place(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_TIMEOUT", SHORT)
    with closing(Store(store.directory)) as own:
        with store._database.begin():
            for _ in range(2):
                with pytest.raises(StoreBusy, match=r"is busy: other processes of pgduel write to it$"):
                    own.add_finding(FINDING, "1/x/0", CASE)
            assert _waiting() == 1
        assert own.add_finding(FINDING, "1/x/0", CASE)


def test_a_store_that_is_closed_waits_no_longer(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_TIMEOUT", SHORT)
    with store._database.begin(), closing(Store(store.directory)) as own, pytest.raises(StoreBusy):
        own.add_finding(FINDING, "1/x/0", CASE)
    monkeypatch.undo()
    assert store.add_finding(FINDING, "1/x/0", CASE)
