"""Compiled harnesses are kept for all checkouts of the project."""

import shutil
from pathlib import Path

import pytest

from fuzz import workdir
from fuzz.engines.libfuzzer import build as building
from fuzz.engines.libfuzzer.run import run_harness
from tests.libfuzzer.harnesses import TOP, Harness, assert_clean

pytestmark = pytest.mark.servers


def test_a_harness_outlives_the_checkout_it_was_compiled_in(
    harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(TOP / "fuzz" / "engines" / "libfuzzer", checkout)
    monkeypatch.setattr(building, "_HERE", checkout)
    monkeypatch.setattr(workdir, "harnesses", lambda: tmp_path)
    compiled = harness("blockbloom")
    shutil.rmtree(checkout)
    run = run_harness(compiled, 0, TOP / "corpus" / "libfuzzer" / "blockbloom")
    assert_clean(run)
    assert run.functions["blockbloom_add"].calls > 0
