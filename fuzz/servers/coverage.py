"""Coverage: the reached lines and branches of the server's C, from profiles of a build in flavor `coverage`."""

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

# One file per program and library, in which all of its processes count while they run.
PROFILES: Final = "%m%c.profraw"
_MERGE: Final = "llvm-profdata-19"
_EXPORT: Final = "llvm-cov-19"


@dataclass(frozen=True, slots=True)
class Covered:
    """Numbers of lines and branches of some files, and of those reached. A condition has two branches."""

    lines: int
    lines_reached: int
    branches: int
    branches_reached: int


def covered(program: Path, profiles: Path, directories: Sequence[str]) -> dict[str, Covered]:
    """Return the coverage of each source directory by a program. Raises ServerError.

    `profiles` is the directory with the counts of its processes, which may still run.
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
        options = server_account().options()  # these tools read files of patched programs
        done = subprocess.run([tool, *arguments], capture_output=True, text=True, **options)
    except FileNotFoundError as error:
        raise ServerError(f"cannot read coverage without {tool}; see {workdir.COMMAND} doctor") from error
    if done.returncode:
        raise ServerError(f"cannot read coverage: {first_line(done.stderr)}")
    return done.stdout
