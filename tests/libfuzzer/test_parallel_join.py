"""Tests of the native harness of Parallel Hash Join: it passes, its corpus reaches many branches, and it finds bugs."""

from pathlib import Path

import pytest

from fuzz.engines.libfuzzer.run import run_harness
from tests.libfuzzer.harnesses import TOP, Harness, assert_clean

pytestmark = pytest.mark.servers

CORPUS = TOP / "corpus" / "libfuzzer" / "parallel_join"
SECONDS = 240.0  # of the clock, at most: a busy machine needs several times as many as an idle one
BUGS = sorted((Path(__file__).parent / "bugs").glob("parallel_join_*.patch"))


def test_no_row_is_lost_or_repeated(harness: Harness) -> None:
    run = run_harness(harness("parallel_join"), 10, CORPUS)
    assert_clean(run)
    assert run.executions > 20


def test_corpus_reaches_branches_of_all_phases(harness: Harness) -> None:
    run = run_harness(harness("parallel_join"), 0, CORPUS)
    assert_clean(run)
    reached = run.functions

    # batches that are added, and processes that begin meanwhile
    grow = reached["ExecParallelHashIncreaseNumBatches"]
    for phase in ("ELECT", "REALLOCATE", "REPARTITION", "DECIDE", "FINISH"):
        assert grow.branches[f"case PHJ_GROW_BATCHES_{phase}"][0] > 0, phase
    assert min(grow.branches["hashtable->nbatch == 1"]) > 0
    assert min(grow.branches["space_exhausted"]) > 0
    assert min(grow.branches["extreme_skew_detected"]) > 0

    # processes that begin in any phase of the join
    for function, phases in (
        ("MultiExecParallelHash", ("BUILD_ALLOCATE", "BUILD_HASH_INNER", "BUILD_BUCKETS", "BUILD_HASH_OUTER")),
        ("ExecParallelHashJoinNewBatch", ("BATCH_ELECT", "BATCH_LOAD", "BATCH_PROBE", "BATCH_SCAN", "BATCH_FREE")),
    ):
        for phase in phases:
            assert reached[function].branches[f"case PHJ_{phase}"][0] > 0, phase

    # filters that are planned, late, or do not fit
    assert min(reached["ExecParallelHashBloomStart"].branches["size == 0"]) > 0
    assert min(reached["ExecParallelHashRepartitionFirst"].branches["late_bloom != NULL"]) > 0
    assert min(reached["ExecParallelHashBloomFinish"].branches["!ExecParallelHashBloomFits(hashtable)"]) > 0

    # filters that start when there are tuples for them, or when there are no more
    assert min(reached["ExecParallelHashBloomRemember"].branches["hashtable->bloomNumValues < max_values"]) > 0
    assert min(reached["ExecParallelHashBloomAddLeftValues"].branches["pstate->bloom_size > 0"]) > 0

    # excluded rows that are returned at once, or dropped
    partition = reached["ExecParallelHashJoinPartitionOuter"]
    assert min(partition.branches["((hjstate)->hj_NullInnerTupleSlot != NULL)"]) > 0

    # processes that leave early, and scans of unmatched rows
    assert min(reached["ExecHashTableDetachBatch"].branches["!hashtable->batches[curbatch].outer_eof"]) > 0
    assert reached["ExecParallelScanHashTableForUnmatched"].calls > 0

    # waiting processes
    assert min(reached["BarrierArriveAndWait"].branches["release"]) > 0
    assert min(reached["ConditionVariableBroadcast"].branches["have_sentinel"]) > 0


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.stem.removeprefix("parallel_join_"))
def test_finds_injected_bug(harness: Harness, bug: Path) -> None:
    found = run_harness(harness("parallel_join", bug=bug), SECONDS, CORPUS)
    assert found.crash is not None
    assert found.message
