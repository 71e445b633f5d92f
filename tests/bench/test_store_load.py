"""Tests of simulated workers on a store."""

import json
from collections import Counter
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from fuzz.bench import store_load
from fuzz.bench.bench import BenchError
from fuzz.bench.store_load import SHAPES, Load, Place, RecordedCase, Recording, bend, measured
from fuzz.campaign.counters import Counters
from fuzz.campaign.schema import StoreError
from fuzz.campaign.store import StoredDoubt
from fuzz.cli import bench
from fuzz.generators.generator import all_generators
from oracles.model.case import Case, Step
from oracles.model.finding import Finding
from tests.cli.command import Command, json_of

LOAD = Load("sqlite", shapes=0, workers=1, ranges=1.0, cases=2.0, findings=0.5, busy=0.99, driver=0.01)
CASE = Case("x", (Step("CREATE TABLE t (a int)"),), ())
FINDINGS = [Finding("result", ("a", "b"), origin, None, "rows differ", "", "") for origin in ("rows", "types")]


def test_simulated_workers_store_what_is_recorded(tmp_path: Path) -> None:
    doubt = StoredDoubt("result", "unstable", "rows", "1/x/0", CASE)
    cases = {
        name: [RecordedCase(0.05, Counters(cases=Counter({name: 1}), judged=Counter({name: 7})), (doubt,))]
        for name in all_generators()
    }
    place = Place(tmp_path / "1")
    load = measured(Recording(cases, [(finding, CASE) for finding in FINDINGS]), place, 2, 5, 1)
    assert (load.store, load.shapes, load.workers) == ("sqlite", 5, 2)
    assert 0 < load.ranges <= load.cases
    assert load.findings > 0
    assert load.busy > 0
    with closing(place.opened()) as store:
        assert store.counters.judged.total() == 7 * store.counters.cases.total() == 7 * sum(store.done().values())
        findings = store.findings()
        assert {found.finding for found in findings} <= set(FINDINGS)
        assert findings
        assert all(found.reduced for found in findings)
        assert store.doubts()


def test_the_curve_bends_where_workers_wait() -> None:
    loads = [replace(LOAD, workers=workers, busy=busy) for workers, busy in ((4, 0.7), (1, 0.99), (2, 0.92))]
    assert bend(loads) == loads[0]
    assert bend(loads[1:]) is None


def _measure_some(_recording: Recording, place: Place, workers: int, shapes: int, _seconds: float) -> Load:
    """Fail for three workers on SQLite; be interrupted by the user for five on PostgreSQL, in the second part."""
    if (place.store, workers) == ("sqlite", 3):
        raise StoreError("the store is busy")
    if (place.store, workers, shapes) == ("postgresql", 5, SHAPES[1]):
        raise KeyboardInterrupt
    return replace(LOAD, store=place.store, shapes=shapes, workers=workers)


@pytest.mark.parametrize(
    ("workers", "error", "rows"),
    [
        ("1,3", "2 of 8 measurements failed; run those again", 6),
        ("1,5", "interrupted: the rest is not measured; run it again", 7),
    ],
)
def test_rows_are_kept_after_a_failure_and_after_an_interrupt(
    workers: str, error: str, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_load, "recorded", lambda *_: nullcontext((Recording({}, []), "postgresql:///x")))
    monkeypatch.setattr(store_load, "measured", _measure_some)
    lines: list[str] = []
    monkeypatch.setattr(bench, "say", lines.append)
    printed: list[Load] = []
    monkeypatch.setattr(bench, "print_loads", lambda _console, found: printed.extend(found))
    monkeypatch.setenv("PGDUEL_CAMPAIGNS", str(tmp_path))
    file = tmp_path / "loads.json"
    with pytest.raises(BenchError, match=f"^{error}$"):
        bench.store(workers=workers, json_file=file)
    assert len(printed) == rows
    assert [each["workers"] for each in json.loads(file.read_text())] == [each.workers for each in printed]
    failed = [f"not measured: sqlite, 3 workers, {shapes} plan shapes before: the store is busy" for shapes in SHAPES]
    assert lines[1:] == (failed if workers == "1,3" else [])


@pytest.mark.servers
@pytest.mark.long
def test_both_stores_are_measured(tmp_path: Path) -> None:
    file = tmp_path / "loads.json"
    ended = Command(tmp_path / "campaigns")("bench", "store", "--workers", "1,3", "--seconds", "1", "--json", file)
    loads = json_of(ended, file, 0)
    assert {(each["store"], each["shapes"], each["workers"]) for each in loads} == {
        (store, shapes, workers) for store in ("sqlite", "postgresql") for shapes in (0, 100_000) for workers in (1, 3)
    }
    assert all(each["ranges"] > 0 and each["findings"] >= 0 for each in loads)
    assert "100000 plan shapes before" in ended.out
