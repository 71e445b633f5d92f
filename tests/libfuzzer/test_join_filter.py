"""Tests of the native harness of hash joins with a Bloom filter: it passes, reaches all branches, and finds bugs."""

from pathlib import Path

import pytest

from fuzz.engines.libfuzzer.run import run_harness
from tests.libfuzzer.harnesses import TOP, Harness, assert_clean

pytestmark = pytest.mark.servers

CORPUS = TOP / "corpus" / "libfuzzer" / "join_filter"
SECONDS = 240.0  # of the clock, at most: a busy machine needs several times as many as an idle one
BUGS = sorted((Path(__file__).parent / "bugs").glob("join_filter_*.patch"))


def test_no_row_is_lost_or_repeated(harness: Harness) -> None:
    run = run_harness(harness("join_filter"), 10, CORPUS)
    assert_clean(run)
    assert run.executions > 20


def test_corpus_reaches_all_branches(harness: Harness) -> None:
    run = run_harness(harness("join_filter"), 0, CORPUS)
    assert_clean(run)
    reached = run.functions

    # filters that are planned, remembered, and late
    assert min(reached["ExecHashBloomChooseSize"].branches["used + size <= space"]) > 0
    assert min(reached["ExecHashBloomStart"].branches["memory == NULL"]) > 0
    assert min(reached["ExecHashBloomStartPlanned"].branches["i < hashtable->bloomNumValues"]) > 0
    assert min(reached["ExecHashBloomStartLate"].branches["i < nhashvalues"]) > 0
    assert min(reached["ExecHashIncreaseNumBatches"].branches["late_bloom != NULL"]) > 0

    # filters that shrink, or are given up
    assert min(reached["ExecHashBloomMakeRoom"].branches["too_many_tuples"]) > 0
    assert min(reached["ExecHashBloomMakeRoom"].branches["bloom->size / 2 * 8.0 >= least_bits"]) > 0
    assert reached["ExecHashBloomHalve"].calls > 0
    assert reached["ExecHashBloomGiveUp"].calls > 0

    # look-ups that pause, begin again, and are deferred
    assert min(reached["ExecHashBloomNextPeriod"].branches["was_pausing"]) > 0
    assert min(reached["ExecHashBloomNextPeriod"].branches["useful"]) > 0
    flushed = reached["ExecHashJoinFlushDeferred"].branches
    assert reached["ExecHashJoinDeferTuple"].calls > 0
    assert min(flushed["bloom->deferred == NULL"]) > 0
    assert min(flushed["!ExecHashBloomExcludes(hashtable, bloom->deferredHash)"]) > 0

    # common values, and their buckets that are removed
    assert min(reached["MultiExecPrivateHash"].branches["bucketNumber != INVALID_SKEW_BUCKET_NO"]) > 0
    assert reached["ExecHashRemoveNextSkewBucket"].calls > 0


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.stem.removeprefix("join_filter_"))
def test_finds_injected_bug(harness: Harness, tmp_path: Path, bug: Path) -> None:
    found = run_harness(harness("join_filter", bug=bug), SECONDS, tmp_path)
    assert found.crash is not None
    assert found.message
