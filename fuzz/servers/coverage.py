"""Coverage: how much of the server's C was reached, as the profiles of a build in flavor `coverage` tell."""

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fuzz import workdir
from fuzz.errors import ServerError, first_line
from fuzz.servers.account import server_account

# One file for each program and library, which all of its processes count in as they run.
PROFILES: Final = "%m%c.profraw"
_MERGE: Final = "llvm-profdata-19"
_EXPORT: Final = "llvm-cov-19"


@dataclass(frozen=True, slots=True)
class Covered:
    """How many lines and branches of some files there are, and were reached; a condition has two branches."""

    lines: int
    lines_reached: int
    branches: int
    branches_reached: int


def covered(program: Path, profiles: Path, directories: Sequence[str]) -> dict[str, Covered]:
    """Return what was covered of each directory of the source tree by a program. Raises ServerError.

    `profiles` is a directory with what its processes counted, who may still run.
    """
    account = server_account()
    with tempfile.TemporaryDirectory(prefix="pgduel-coverage-") as directory:
        account.give(Path(directory))
        merged = Path(directory, "merged")
        with account.file_access():
            written = sorted(profiles.glob("*.profraw"))
        _output(_MERGE, "merge", "-o", merged, *written)
        told = json.loads(_output(_EXPORT, "export", "--summary-only", f"--instr-profile={merged}", program))
    files = told["data"][0]["files"]
    return {
        name: _summed([file["summary"] for file in files if f"/{name}/" in file["filename"]]) for name in directories
    }


def _summed(summaries: Sequence[Any]) -> Covered:
    counts = (
        sum(summary[kind][figure] for summary in summaries)
        for kind in ("lines", "branches")
        for figure in ("count", "covered")
    )
    return Covered(*counts)


def _output(tool: str, *arguments: str | Path) -> str:
    try:
        options = server_account().options()  # these tools read what patched programs wrote
        done = subprocess.run([tool, *arguments], capture_output=True, text=True, **options)
    except FileNotFoundError as error:
        raise ServerError(
            f"coverage cannot be read without {tool}: run {workdir.COMMAND} doctor to see what to install"
        ) from error
    if done.returncode:
        raise ServerError(f"coverage cannot be read: {first_line(done.stderr)}")
    return done.stdout
