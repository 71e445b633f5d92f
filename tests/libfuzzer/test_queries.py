"""Tests of the harness of planner and executor in one process: it passes on the patches, and finds planted failures."""

from pathlib import Path

import pytest

from fuzz.engines.libfuzzer.kept import failure_of, read_input
from fuzz.engines.libfuzzer.run import run_harness
from tests.libfuzzer.harnesses import TOP, Harness, assert_clean

pytestmark = [pytest.mark.servers, pytest.mark.long(group="guided_sanitize")]

CORPUS = TOP / "corpus" / "libfuzzer" / "queries"
INJECTED = TOP / "tests" / "injected_bugs"
BUGS = ("bloom/bloom_left_join_drops", "buckets/chain_lost_in_rebuild", "group_keeps_right_count")
ORIGINS = {  # beginnings, by the failure that $PGDUEL_CANARY plants
    "rows": "check in judge_query, queries/harness.c:",
    "error": "XX000 in plant_failure, canary.c",
    "warning": "WARNING in plant_failure, canary.c",
    "assertion": "failed assertion str != NULL in appendBinaryStringInfo",
    "memory": "AddressSanitizer: heap-use-after-free in plant_failure, queries/canary.c",
    "loop": "a process takes more than",
    "signal": "a process ends by signal",
    "exit": "libFuzzer: fuzz target exited",
}
CPU_SECONDS = 60.0
CLOCK = 240.0  # seconds of the clock, at most: a busy machine needs several times as many as an idle one


def test_queries_return_equal_rows_under_all_settings(harness: Harness) -> None:
    run = run_harness(harness("queries"), 20, CORPUS)
    assert_clean(run)
    assert run.executions > 50
    assert run.ended.edges > 10_000


@pytest.mark.parametrize("planted", ORIGINS)
def test_each_kind_of_failure_is_found_and_shows_its_query(harness: Harness, tmp_path: Path, planted: str) -> None:
    run = run_harness(harness("queries"), 60, tmp_path, variables={"PGDUEL_CANARY": planted})
    assert run.crash is not None
    failure = failure_of(run.output, read_input(run.crash))
    assert failure.origin.startswith(ORIGINS[planted])
    assert "SET work_mem = " in failure.report
    assert "SELECT " in failure.report


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.rpartition("/")[2])
def test_finds_injected_bug(harness: Harness, tmp_path: Path, bug: str, seed: int) -> None:
    found = run_harness(harness("queries", bug=INJECTED / f"{bug}.patch"), CLOCK, tmp_path, seed=seed)
    assert found.crash is not None
    assert found.message
    assert found.cpu_seconds < CPU_SECONDS
