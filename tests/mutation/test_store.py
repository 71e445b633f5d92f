"""Tests of the store of mutants: results survive a kill, and one process at a time adds to them."""

import json
from pathlib import Path

import pytest

from fuzz.errors import StorageError
from fuzz.mutation.mutants import Mutant
from fuzz.mutation.own_tests import SoundTests
from fuzz.mutation.result import DuelResult, Kill, MutantOutcome, MutantResult
from fuzz.mutation.store import Control, MutantStore, opened

CONTROL = Control(
    {"outer_joins": 1}, {"0123456789ab": "a row too many"}, 2.5, SoundTests(("regress/a",), (), {"regress": 1.5})
)
KILL = Kill("result", "1 row missing", "1/outer_joins/3", again=True)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PGDUEL_CAMPAIGNS", raising=False)


def mutant(line: int) -> Mutant:
    return Mutant("0001.patch", "a.c", line, "before", "after", "x ==> y", f"diff of {line}")


RESULTS = {
    MutantOutcome.INVALID: MutantResult(mutant(1), invalid="the source does not compile"),
    MutantOutcome.EQUIVALENT: MutantResult(mutant(2)),
    MutantOutcome.DUEL: MutantResult(mutant(3), duel=DuelResult(4, 0, KILL, 2.5, 120.0)),
    MutantOutcome.TESTS: MutantResult(mutant(4), duel=DuelResult(100), failed_tests=("regress/a",)),
    MutantOutcome.BOTH: MutantResult(mutant(5), duel=DuelResult(4, 0, KILL), failed_tests=("regress/a",)),
    MutantOutcome.NOBODY: MutantResult(mutant(6), duel=DuelResult(100, failures=1)),
}


@pytest.mark.parametrize(
    ("duel", "limits"),
    [
        (None, {1: True}),
        (DuelResult(4, 0, KILL, 50.0, 120.0), {49: False, 50: True, 121: True}),
        (DuelResult(4, 0, KILL, 125.0, 120.0), {119: False, 120: True, 130: True}),  # the last case began in time
        (DuelResult(100, 0, None, 50.0, 120.0), {49: True, 121: True}),  # all cases were judged
        (DuelResult(40, 0, None, 121.0, 120.0), {119: True, 120: True, 121: False}),
    ],
)
def test_a_result_holds_for_other_limits_with_the_same_outcome(
    duel: DuelResult | None, limits: dict[int, bool]
) -> None:
    result = MutantResult(mutant(1), duel=duel)
    assert {limit: result.holds(limit) for limit in limits} == limits


def test_outcomes() -> None:
    assert {result.outcome: result for result in RESULTS.values()} == RESULTS


def test_another_run_has_the_results() -> None:
    with opened(("tree", "1")) as store:
        assert (store.control, store.results) == (None, {})
        store.set_control(CONTROL)
        for result in RESULTS.values():
            store.add(result)
    with opened(("tree", "1")) as store:
        assert store.control == CONTROL
        assert list(store.results.values()) == list(RESULTS.values())
        assert [store.patch(mutant(line).key).exists() for line in (2, 3)] == [False, True]
    with opened(("tree", "2")) as store:
        assert store.results == {}


def test_results_of_an_earlier_version_have_no_seconds() -> None:
    with opened(("tree",)) as store:
        store.add(RESULTS[MutantOutcome.DUEL])
        path = store.directory / "mutants.jsonl"
    line = json.loads(path.read_text())
    del line["duel"]["seconds"], line["duel"]["limit"]
    path.write_text(f"{json.dumps(line)}\n")
    (result,) = MutantStore(path.parent).results.values()
    assert result.duel == DuelResult(4, 0, KILL)
    assert result.holds(1)


def test_a_line_that_a_kill_left_unfinished_is_cut_off() -> None:
    with opened(("tree",)) as store:
        store.add(RESULTS[MutantOutcome.INVALID])
        path = store.directory / "mutants.jsonl"
    whole = path.read_text()
    path.write_text(whole + whole[:40])
    again = MutantStore(path.parent)
    assert list(again.results.values()) == [RESULTS[MutantOutcome.INVALID]]
    again.add(RESULTS[MutantOutcome.DUEL])
    assert len(MutantStore(path.parent).results) == 2


def test_a_second_process_is_refused() -> None:
    with (
        opened(("tree",)),
        pytest.raises(StorageError, match="another process judges these mutants"),
        opened(("tree",)),
    ):
        pass


def test_a_damaged_line_is_named() -> None:
    with opened(("tree",)) as store:
        path = store.directory / "mutants.jsonl"
    path.write_text("{}\n")
    with pytest.raises(StorageError, match=f"cannot read {path}"):
        MutantStore(path.parent)
