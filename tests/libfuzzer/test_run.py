"""Tests of runs and merges with a small program in place of a harness."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from fuzz.campaign import harnesses
from fuzz.campaign.catalog import new_campaign
from fuzz.campaign.harnesses import HarnessCampaign
from fuzz.campaign.store import Store, harness_findings
from fuzz.engines.libfuzzer import run
from fuzz.engines.libfuzzer.build import CLANG, Harness
from fuzz.engines.libfuzzer.kept import Kept, kept_inputs
from fuzz.engines.libfuzzer.run import reading_time, run_harness
from fuzz.execution.exchanges import never
from fuzz.servers.account import server_account

pytestmark = pytest.mark.skipif(not shutil.which(CLANG), reason=f"{CLANG} is not installed")

PROGRAM: Final = """
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (getenv("SLOW") != NULL)
		usleep(200 * 1000);
	if (size > 0 && data[0] == 'b')
		if (size > 1 && data[1] == 'u')
			if (size > 2 && data[2] == 'g')
				abort();
	return 0;
}
"""
HARNESS: Final = Harness("small", "nothing")


@pytest.fixture
def program(open_directory: Path) -> Path:
    """Return a program that is slow with $SLOW, and fails on those that begin with "bug"."""
    source, program = open_directory / "program.c", open_directory / "program"
    source.write_text(PROGRAM)
    subprocess.run([CLANG, "-O1", "-fsanitize=fuzzer", source, "-o", program], check=True)
    return program


@pytest.fixture
def kept(open_directory: Path) -> Iterator[Kept]:
    with kept_inputs(HARNESS.name, open_directory) as kept:
        yield kept


def add(kept: Kept, *inputs: bytes) -> None:
    """Add inputs that earlier runs kept."""
    for data in inputs:
        path = kept.inputs / run.input_name(data)
        path.write_bytes(data)
        server_account().give(path)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("PGDUEL_CAMPAIGNS", str(tmp_path / "campaigns"))
    monkeypatch.setattr(harnesses, "minimized", lambda _, failure: failure)  # takes several seconds
    with closing(Store(new_campaign())) as store:
        yield store


def campaign(store: Store) -> HarnessCampaign:
    return HarnessCampaign("patched", store, lambda _: None, lambda _finding, _file: None, never)


def test_inputs_that_take_longer_than_the_run_are_all_executed(
    program: Path, kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_GRACE", 0.5)
    add(kept, *(b"x%d" % number for number in range(15)))
    assert reading_time(kept.inputs, kept.artifacts) == 15 * run._SLOWEST
    variables = {"SLOW": "1"}
    done = run_harness(program, 1, tmp_path, kept=kept.inputs, artifacts=kept.artifacts, variables=variables)
    assert done.has_read_corpus
    assert done.executions >= 15


def test_kept_inputs_are_merged_after_a_failure(program: Path, kept: Kept, store: Store, tmp_path: Path) -> None:
    add(kept, *(b"x%d" % number for number in range(50)))
    result = campaign(store).fuzz(HARNESS, program, kept, tmp_path / "none", 60, 1)
    assert result.run.crash is not None
    assert len(harness_findings(store)) == 1
    assert not result.remark
    assert 0 < result.kept < 10
    assert kept.failed() == []


def test_no_kept_input_is_deleted_if_one_of_them_fails(program: Path, kept: Kept, store: Store, tmp_path: Path) -> None:
    add(kept, b"bug", b"bugs", *(b"x%d" % number for number in range(50)))
    before = kept.names()
    result = campaign(store).fuzz(HARNESS, program, kept, tmp_path / "none", 60, 1)
    assert result.run.crash is not None
    assert not result.run.has_read_corpus
    assert len(harness_findings(store)) == 1
    assert kept.names() == before
