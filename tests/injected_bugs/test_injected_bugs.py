"""Each bug planted here, in the C of a real server, is found by the oracle that it names, and its reproducer replays.

A bug is a patch on top of the arm `patched`, which begins with `# Oracle: NAME` or `# Oracle: NAME, NAME or NAME`:
whose finding is awaited. Several are named where it depends on the case which of them sees the bug first.
"""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fuzz import workdir

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1800)]

HERE = Path(__file__).parent
PATCHED = workdir.CHECKOUT / "patches" / "pg17" / "optimizations"
BUGS = sorted(HERE.glob("*.patch"))
SECONDS = 60
WANTED = 6
_ORACLES = re.compile(r"# Oracle: (.+)\n")


def pgduel(*arguments: str, exit_code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", *arguments], capture_output=True, text=True, cwd=workdir.CHECKOUT
    )
    assert done.returncode == exit_code, f"{' '.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}"


def arms_with(bug: Path) -> tuple[str, ...]:
    listed = (line.partition("#")[0].strip() for line in (PATCHED / "series").read_text().splitlines())
    series = ",".join(str(patch) for patch in (*(PATCHED / name for name in listed if name), bug))
    return ("--arm", "patched", "--arm", f"bugged={series}")


def fuzz(arms: Sequence[str], directory: Path) -> dict[str, Any]:
    """Return the summary of a campaign that ended with a finding."""
    summary = directory / "summary.json"
    pgduel("build", *arms, exit_code=0)
    limit = ("--stop-at-first", "--minutes", str(SECONDS / 60))
    pgduel("fuzz", *arms, *limit, "--json", str(summary), exit_code=1)
    told: dict[str, Any] = json.loads(summary.read_text())
    return told


def test_there_are_bugs_enough() -> None:
    assert len(BUGS) >= WANTED


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.stem)
def test_an_injected_bug_is_found_and_replays(bug: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = _ORACLES.match(bug.read_text())
    assert named is not None, f"{bug.name} does not name its oracle"
    arms = arms_with(bug)
    told = fuzz(arms, tmp_path)
    cpu = sum(told["cpu_seconds"].values())
    with capsys.disabled():
        sys.stdout.write(f"\n{bug.stem}: {told['seconds']} s, {told['cases']} cases, {cpu:.0f} s of CPU\n")
    assert told["seconds"] < SECONDS
    found = [each for each in told["findings"] if each["oracle"] in re.split(r", | or ", named[1])]
    assert found, told["findings"]
    reproducer = found[0]["reproducer"]
    pgduel("replay", reproducer, *arms, exit_code=1)
    pgduel("replay", reproducer, "--arm", "patched", "--arm", "bugged=patched", exit_code=0)
