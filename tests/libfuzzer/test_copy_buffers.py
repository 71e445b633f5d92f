"""Tests of the native harness of COPY's buffers: it passes, its corpus reaches all branches, and it finds bugs."""

from pathlib import Path

import pytest

from fuzz.engines.libfuzzer.run import run_harness
from tests.libfuzzer.harnesses import TOP, Harness, assert_clean

pytestmark = pytest.mark.servers

CORPUS = TOP / "corpus" / "libfuzzer" / "copy_buffers"
BUGS = sorted((Path(__file__).parent / "bugs").glob("copy_buffers_*.patch"))


@pytest.mark.parametrize("arm", ["patched", "upstream"])
def test_each_row_is_inserted_once(harness: Harness, arm: str) -> None:
    run = run_harness(harness("copy_buffers", arm=arm), 10, CORPUS)
    assert_clean(run)
    assert run.executions > 100


def test_corpus_reaches_all_branches(harness: Harness) -> None:
    run = run_harness(harness("copy_buffers"), 0, CORPUS)
    assert_clean(run)
    reached = run.functions
    for function, condition in (
        ("InfoIsFull", "miinfo->bufferedTuples >= MAX_BUFFERED_TUPLES"),
        ("InfoIsFull", "miinfo->bufferedBytes >= MAX_BUFFERED_BYTES"),
        ("InfoFlush", "list_length(miinfo->multiInsertBuffers) > MAX_PARTITION_BUFFERS"),
        ("InfoFlush", "buffer->resultRelInfo == curr_rri"),
        ("InfoNextFreeSlot", "buffer->slots[nused] == NULL"),
        ("BufferFlush", "resultRelInfo->ri_FdwRoutine"),
        ("BufferFlush", "inserted <= 0"),
        ("BufferFlush", "resultRelInfo->ri_NumIndices > 0"),
        ("BufferFlush", "resultRelInfo->ri_TrigDesc->trig_insert_after_row"),
        ("BufferCleanup", "resultRelInfo->ri_FdwRoutine == NULL"),
    ):
        assert min(reached[f"CopyMultiInsert{function}"].branches[condition]) > 0, (function, condition)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.stem.removeprefix("copy_buffers_"))
def test_finds_injected_bug(harness: Harness, tmp_path: Path, bug: Path) -> None:
    found = run_harness(harness("copy_buffers", bug=bug), 60, tmp_path)
    assert found.crash is not None
    assert found.message
