"""Tests of the native harness of resowner.c: it passes, its corpus reaches the patched code, and it finds bugs."""

from pathlib import Path

import pytest

from fuzz.engines.libfuzzer.run import run_harness
from tests.libfuzzer.harnesses import TOP, Harness, assert_clean

pytestmark = pytest.mark.servers

CORPUS = TOP / "corpus" / "libfuzzer" / "resowner"
BUGS = TOP / "tests" / "injected_bugs"


def test_patched_owners_agree_with_the_model(harness: Harness) -> None:
    assert_clean(run_harness(harness("resowner"), 30, CORPUS))


def test_upstream_agrees_with_the_model(harness: Harness) -> None:
    run = run_harness(harness("resowner", arm="upstream"), 5, CORPUS)
    assert_clean(run)


def test_corpus_reaches_all_branches_of_the_patch(harness: Harness) -> None:
    run = run_harness(harness("resowner"), 0, CORPUS)
    assert_clean(run)
    reached = run.functions

    # all branches but the overflow of a count, which needs 4 billion references
    added = reached["ResourceOwnerAddToHash"].branches
    assert min(added["entry->elem.kind == NULL"]) > 0
    assert min(added["entry->elem.item == value"]) > 0
    assert min(added["entry->elem.kind == kind"]) > 0
    assert min(reached["ResourceOwnerRemoveFromHash"].branches["--entry->count == 0"]) > 0

    assert min(reached["ResourceOwnerForget"].branches["owner->hash[idx].elem.item == value"]) > 0
    assert min(reached["ResourceOwnerForget"].branches["owner->hash[idx].elem.kind == kind"]) > 0
    assert min(reached["ResourceOwnerSort"].branches["owner->nhash == 0"]) > 0
    assert min(reached["ResourceOwnerReleaseAll"].branches["using_arr"]) > 0
    assert min(reached["ResourceOwnerReleaseAll"].branches["printLeakWarnings"]) > 0
    assert min(reached["ResourceOwnerReleaseAllOfKind"].branches["owner->hash[i].elem.kind == kind"]) > 0
    assert min(reached["ResourceOwnerEnlarge"].branches["oldhash != NULL"]) > 0


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    "bug", ["count_off_by_one", "release_once_too_few", "wrong_release_order", "forget_wrong_kind"]
)
def test_finds_injected_bug(harness: Harness, tmp_path: Path, bug: str, seed: int) -> None:
    bugged = harness("resowner", bug=BUGS / f"{bug}.patch")
    found = run_harness(bugged, 30, tmp_path, seed=seed)
    assert found.crash is not None
    assert found.message

    # the input alone repeats the crash on the bug, and passes on the patch
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "input").write_bytes(found.crash.read_bytes())
    again = run_harness(bugged, 0, alone)
    assert again.message == found.message
    assert_clean(run_harness(harness("resowner"), 0, alone))


def test_an_owner_can_be_used_again_after_release(harness: Harness) -> None:
    """AuxProcessResourceOwner is used again. Upstream leaves copies of released entries in its hash table."""
    variables = {"PGDUEL_AUX_OWNER": "1"}
    assert_clean(run_harness(harness("resowner"), 10, CORPUS, variables=variables))
    assert run_harness(harness("resowner", arm="upstream"), 10, CORPUS, variables=variables).crash is not None
