"""Each bug planted in the C of a real server, on top of the arm `patched`, is found in time."""

import sys
from pathlib import Path

import pytest

from tests.injected_bugs.hunt import PG17, hunt, listed

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1800)]

BUGS = sorted(Path(__file__).parent.glob("*.patch"))
SECONDS = 60
WANTED = 6

# In the patch of the Bloom filter, whose branches need more cases than others; hunted for by the workload made for it.
BUGS_OF_FILTER = sorted(Path(__file__).parent.glob("bloom/*.patch"))
SECONDS_OF_FILTER = 120
WANTED_OF_FILTER = 8


def test_there_are_bugs_enough() -> None:
    assert len(BUGS) >= WANTED
    assert len(BUGS_OF_FILTER) >= WANTED_OF_FILTER


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.stem)
def test_an_injected_bug_is_found_and_replays(bug: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = hunt(bug, listed(PG17 / "optimizations"), tmp_path, seconds=SECONDS)
    with capsys.disabled():
        sys.stdout.write(f"\n{said}\n")


@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS_OF_FILTER, ids=lambda bug: bug.stem)
def test_a_bug_of_the_filter_is_found_and_replays(
    bug: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--generator", "outer_joins")
    said = hunt(bug, listed(PG17 / "optimizations"), tmp_path, seconds=SECONDS_OF_FILTER, options=options)
    with capsys.disabled():
        sys.stdout.write(f"\n{said}\n")
