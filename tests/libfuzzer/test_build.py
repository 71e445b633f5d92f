"""Tests of the cache of compiled harnesses, which all checkouts of the project share."""

import shutil
from pathlib import Path

import pytest

from fuzz import workdir
from fuzz.engines.libfuzzer import build as building
from fuzz.engines.libfuzzer.run import run_harness
from tests.libfuzzer.harnesses import TOP, Harness, assert_clean

pytestmark = pytest.mark.servers


def test_a_harness_works_without_the_checkout_that_compiled_it(
    harness: Harness, open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = open_directory / "checkout"
    shutil.copytree(TOP / "fuzz" / "engines" / "libfuzzer", checkout)
    monkeypatch.setattr(building, "_HERE", checkout)
    monkeypatch.setattr(workdir, "harnesses", lambda: open_directory)
    compiled = harness("blockbloom")
    shutil.rmtree(checkout)
    run = run_harness(compiled, 0, TOP / "corpus" / "libfuzzer" / "blockbloom")
    assert_clean(run)
    assert run.functions["blockbloom_add"].calls > 0


def test_a_harness_reuses_object_files_of_another(
    harness: Harness, open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workdir, "harnesses", lambda: open_directory)
    bugs = TOP / "tests" / "libfuzzer" / "bugs"
    sound = harness("blockbloom")
    made = set(open_directory.glob("objects/*.o"))
    shutil.rmtree(sound.parent)
    bugged = harness("blockbloom", bug=bugs / "blockbloom_size_beyond_the_limit.patch")
    (changed,) = set(open_directory.glob("objects/*.o")) - made  # blockbloom.c
    assert changed.stat().st_size
    run = run_harness(bugged, 0, TOP / "corpus" / "libfuzzer" / "blockbloom")
    assert (
        run.crash is not None or run.functions["blockbloom_add"].calls > 0
    )  # coverage names its own copies of the sources
