"""The native harness of hash buckets: numbers are those of brute force, each tuple is found, and bugs are found."""

from pathlib import Path

import pytest

from fuzz.engines.libfuzzer.build import build_harness
from fuzz.engines.libfuzzer.run import run_harness
from fuzz.servers.arm import parse_series
from fuzz.servers.base import Base
from fuzz.servers.build import Build, ensure_build
from fuzz.servers.flavor import FLAVORS
from fuzz.servers.series import Series, apply_series, series_from_files
from tests.libfuzzer.harnesses import TOP, assert_clean

pytestmark = pytest.mark.servers

CORPUS = TOP / "corpus" / "libfuzzer" / "buckets"
BUGS = sorted((Path(__file__).parent / "bugs").glob("buckets_*.patch"))


@pytest.fixture(scope="module")
def series(base: Base) -> Series:
    return parse_series(str(TOP / "patches" / "pg17" / "variants" / "001-buckets"), base)


@pytest.fixture(scope="module")
def bucketed(base: Base, series: Series) -> Build:
    """Return a build of the patch itself: its wait events are in headers that are made from other files."""
    return ensure_build(apply_series(base.tree, series)[-1], FLAVORS["assert"], print)


def test_numbers_are_right_and_each_tuple_is_found(bucketed: Build) -> None:
    run = run_harness(build_harness(bucketed, "buckets"), 10, CORPUS)
    assert_clean(run)
    assert run.executions > 100


def test_corpus_reaches_all_branches(bucketed: Build) -> None:
    run = run_harness(build_harness(bucketed, "buckets"), 0, CORPUS)
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
def test_finds_injected_bug(base: Base, series: Series, bucketed: Build, tmp_path: Path, bug: Path) -> None:
    bugged = Series("bugged", (series + series_from_files([bug])).patches)
    found = run_harness(build_harness(bucketed, "buckets", apply_series(base.tree, bugged)[-1]), 60, tmp_path)
    assert found.crash is not None
    assert found.complaint
