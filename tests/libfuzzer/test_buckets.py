"""Tests of the native harness of hash buckets: it passes, its corpus reaches all branches, and it finds bugs."""

from pathlib import Path

import pytest

from fuzz.engines.libfuzzer.run import run_harness
from tests.libfuzzer.harnesses import TOP, Harness, assert_clean

pytestmark = pytest.mark.servers

CORPUS = TOP / "corpus" / "libfuzzer" / "buckets"
BUGS = sorted((Path(__file__).parent / "bugs").glob("buckets_*.patch"))


def test_numbers_are_right_and_each_tuple_is_found(harness: Harness) -> None:
    run = run_harness(harness("buckets"), 10, CORPUS)
    assert_clean(run)
    assert run.executions > 100


def test_corpus_reaches_all_branches(harness: Harness) -> None:
    run = run_harness(harness("buckets"), 0, CORPUS)
    assert_clean(run)
    reached = run.functions
    assert min(reached["ExecHashBucketsFor"].branches["nbuckets >= max_nbuckets"]) > 0
    assert min(reached["ExecHashChooseBuckets"].branches["used > allowed"]) > 0
    assert min(reached["ExecHashChooseBuckets"].branches["(Size) nbuckets * sizeof(HashJoinTuple) > room"]) > 0
    assert min(reached["ExecHashTableInsert"].branches["batchno == hashtable->curbatch"]) > 0
    assert min(reached["ExecHashIncreaseNumBatches"].branches["!hashtable->growEnabled"]) > 0
    assert min(reached["ExecHashIncreaseNumBatches"].branches["batchno == curbatch"]) > 0
    assert min(reached["ExecHashIncreaseNumBatches"].branches["nfreed == 0"]) > 0
    assert min(reached["ExecHashIncreaseNumBatches"].branches["nfreed == ninmemory"]) > 0
    assert min(reached["dense_alloc"].branches["size > HASH_CHUNK_THRESHOLD"]) > 0
    assert min(reached["ExecHashTableBuildBuckets"].branches["n < HASH_LINK_GROUP"]) > 0


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.stem.removeprefix("buckets_"))
def test_finds_injected_bug(harness: Harness, tmp_path: Path, bug: Path) -> None:
    found = run_harness(harness("buckets", bug=bug), 60, tmp_path)
    assert found.crash is not None
    assert found.message
