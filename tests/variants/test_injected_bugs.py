"""Each bug planted in a variant, a series that is not part of the arm `patched`, is found in time.

A directory here is named as the variant that its bugs are for.
"""

import sys
from pathlib import Path

import pytest

from tests.injected_bugs.hunt import PG17, hunt, listed

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1800)]

BUGS = sorted(Path(__file__).parent.glob("*/*.patch"))
GENERATOR = {"004-bloom": "outer_joins"}
SECONDS = 120


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.parent.name}-{bug.stem}")
def test_an_injected_bug_is_found_and_replays(bug: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    variant = bug.parent.name
    sound = [*listed(PG17 / "optimizations"), *listed(PG17 / "variants" / variant)]
    said = hunt(bug, sound, tmp_path, seconds=SECONDS, options=("--generator", GENERATOR[variant]))
    with capsys.disabled():
        sys.stdout.write(f"\n{said}\n")
