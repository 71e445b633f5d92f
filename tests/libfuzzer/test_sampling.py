"""Tests of the native harness of postgres_fdw's sampling: it passes, reaches all decisions, and finds bugs."""

from pathlib import Path

import pytest

from fuzz.engines.libfuzzer.run import run_harness
from tests.libfuzzer.harnesses import TOP, Harness, assert_clean

pytestmark = pytest.mark.servers

CORPUS = TOP / "corpus" / "libfuzzer" / "sampling"
BUGS = sorted((Path(__file__).parent / "bugs").glob("sampling_*.patch"))


def test_all_methods_pass(harness: Harness) -> None:
    run = run_harness(harness("sampling"), 10, CORPUS)
    assert_clean(run)
    assert run.executions > 1000


def test_corpus_reaches_all_decisions(harness: Harness) -> None:
    run = run_harness(harness("sampling"), 0, CORPUS)
    assert_clean(run)
    reached = run.functions
    for function, condition in (
        ("pgfdw_parse_sampling", "strcmp(value, sampling_names[i]) == 0"),
        ("pgfdw_add_remote_table", "blocks <= 0"),
        ("pgfdw_finish_remote_size", "size->unknown"),
        ("pgfdw_finish_remote_size", "size->live_rows >= 0"),
        ("is_size_uncertain", "size->doubtful"),
        ("pgfdw_count_fraction", "!size->tablesample"),
        ("pgfdw_count_fraction", "size->counted"),
        ("pgfdw_count_fraction", "size->blocks <= MIN_SAMPLE_BLOCKS"),
        ("pgfdw_choose_sample", "!size->exact"),
        ("pgfdw_choose_sample", "size->rows <= most"),
        ("pgfdw_choose_sample", "size->guessed"),
        ("pgfdw_choose_sample", "blocks >= size->blocks"),
        ("pgfdw_choose_sample", "blocks > 0"),
        ("sample_blocks", "blocks > MAX_AUTO_BLOCK_FRACTION * size->blocks"),
        ("sample_blocks", "blocks < size->blocks"),
        ("sample_target", "at_most"),
        ("pgfdw_estimate_rows", "rows < sample->limit"),
        ("deparseAnalyzeSql", "sample->tablesample"),
        ("deparseAnalyzeSql", "sample->random_fraction < 1"),
        ("deparseAnalyzeSql", "sample->limit > 0"),
        ("deparseAnalyzeCountSql", "fraction < 1"),
        ("deparseAnalyzeSizeSql", "whole_tree"),
    ):
        assert min(reached[function].branches[condition]) > 0, (function, condition)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.stem.removeprefix("sampling_"))
def test_finds_injected_bug(harness: Harness, tmp_path: Path, bug: Path) -> None:
    found = run_harness(harness("sampling", bug=bug), 60, tmp_path)
    assert found.crash is not None
    assert found.message
