"""Tests of kept inputs and failures of native harnesses."""

import shutil
from pathlib import Path

import pytest

from fuzz.engines.libfuzzer.kept import (
    failure_of,
    kept_inputs,
    merge,
    minimal_corpus,
    minimized,
    read_input,
    replay,
)
from fuzz.engines.libfuzzer.run import run_harness
from fuzz.errors import CaseError
from tests.libfuzzer.harnesses import TOP, Harness, assert_clean

pytestmark = pytest.mark.servers

CORPUS = TOP / "corpus" / "libfuzzer" / "resowner"
BUG = TOP / "tests" / "libfuzzer" / "bugs" / "blockbloom_lacks_what_was_added.patch"


def test_merged_inputs_reach_what_all_did_and_a_minimal_corpus_keeps_given_names(
    harness: Harness, open_directory: Path, tmp_path: Path
) -> None:
    program = harness("resowner")
    seeds = tmp_path / "seeds"
    shutil.copytree(CORPUS, seeds)
    (seeds / ("0" * 40)).write_bytes((seeds / "batch_of_copy").read_bytes() + b"\0")  # adds nothing
    with kept_inputs("resowner", open_directory) as kept:
        run = run_harness(program, 5, seeds, kept=kept.inputs, artifacts=kept.artifacts)
        assert_clean(run)
        before = kept.names()
        merge(program, kept, seeds)
        after = kept.names()
        corpus = minimal_corpus(program, kept, seeds)
        again = run_harness(program, 0, tmp_path / "none", kept=kept.inputs, artifacts=kept.artifacts)
    assert len(after) < len(before) + len(list(seeds.iterdir()))
    assert again.begun.features >= 0.99 * run.ended.features
    assert {path.name for path in seeds.iterdir() if len(path.name) < 40} <= corpus.keys()
    assert "0" * 40 not in corpus
    smallest = tmp_path / "smallest"
    smallest.mkdir()
    for name, data in corpus.items():
        (smallest / name).write_bytes(data)
    assert run_harness(program, 0, smallest).begun.edges >= 0.99 * run.ended.edges
    assert len(corpus) < len(after)


def test_a_failure_has_one_origin_for_other_inputs_and_a_smaller_input(harness: Harness, tmp_path: Path) -> None:
    program, sound = harness("blockbloom", bug=BUG), harness("blockbloom")
    failures = []
    for seed in (1, 2):
        run = run_harness(program, 30, tmp_path, seed=seed)
        assert run.crash is not None
        failures.append(failure_of(run.output, read_input(run.crash)))
    assert failures[0].data != failures[1].data
    assert failures[0].origin == failures[1].origin
    smaller = minimized(program, failures[0], 30)
    assert smaller.origin == failures[0].origin
    assert len(smaller.data) <= len(failures[0].data)
    assert replay(program, smaller.data) is not None
    assert replay(sound, smaller.data) is None


def test_kept_inputs_are_for_one_run_at_a_time(open_directory: Path) -> None:
    with (
        kept_inputs("resowner", open_directory),
        pytest.raises(CaseError, match="another run uses the inputs of resowner"),
        kept_inputs("resowner", open_directory),
    ):
        pass
