"""Tests of the native harness of blockbloom.c: it passes, its corpus reaches all branches, and it finds bugs."""

from pathlib import Path

import pytest

from fuzz.engines.libfuzzer.run import run_harness
from tests.libfuzzer.harnesses import TOP, Harness, assert_clean

pytestmark = pytest.mark.servers

CORPUS = TOP / "corpus" / "libfuzzer" / "blockbloom"
BUGS = sorted((Path(__file__).parent / "bugs").glob("blockbloom_*.patch"))


def test_the_filter_passes(harness: Harness) -> None:
    run = run_harness(harness("blockbloom"), 10, CORPUS)
    assert_clean(run)
    assert run.executions > 100


def test_corpus_reaches_all_branches(harness: Harness) -> None:
    run = run_harness(harness("blockbloom"), 0, CORPUS)
    assert_clean(run)
    reached = run.functions
    assert min(reached["blockbloom_size"].branches["max_size < size"]) > 0
    assert min(reached["blockbloom_size"].branches["size < nvalues * bits_per_value / 8"]) > 0
    assert min(reached["blockbloom_size"].branches["size <= max_size / 2"]) > 0
    for name in ("add", "add_shared", "lacks", "fold", "false_positive_rate"):
        assert reached[f"blockbloom_{name}"].calls > 0


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.stem.removeprefix("blockbloom_"))
def test_finds_injected_bug(harness: Harness, tmp_path: Path, bug: Path) -> None:
    found = run_harness(harness("blockbloom", bug=bug), 60, tmp_path)
    assert found.crash is not None
    assert found.message
