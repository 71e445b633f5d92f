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


HUNTS = (
    *(pytest.param(bug, SECONDS, (), id=bug.stem) for bug in BUGS),
    *(
        pytest.param(bug, SECONDS_OF_FILTER, ("--generator", "outer_joins"), id=bug.stem, marks=pytest.mark.long)
        for bug in BUGS_OF_FILTER
    ),
)


@pytest.mark.parametrize(("bug", "seconds", "options"), HUNTS)
def test_an_injected_bug_is_found_and_replays(
    bug: Path, seconds: int, options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = hunt(bug, listed(PG17 / "optimizations"), tmp_path, seconds=seconds, options=options)
    with capsys.disabled():
        sys.stdout.write(f"\n{said}\n")
