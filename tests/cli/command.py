"""Running the `pgduel` command as a user does."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzz import workdir

EQUALS = ("--arm", "a=upstream", "--arm", "b=upstream")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Command:
    """The command, with campaigns of its own, and a cache of its own where it has a `home`."""

    campaigns: Path
    home: Path | None = None

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start it, in a session of its own, as a terminal would."""
        return self._python(["-m", "fuzz", *map(str, arguments)])

    def __call__(self, *arguments: str | Path) -> Ended:
        """Run it to its end."""
        return self.run(["-m", "fuzz", *map(str, arguments)])

    def run(self, arguments: list[str]) -> Ended:
        """Run Python to its end, as the command does."""
        return ended(self._python(arguments))

    def _python(self, arguments: list[str]) -> subprocess.Popen[str]:
        own = {"PGDUEL_CAMPAIGNS": str(self.campaigns), "PYTHONPATH": str(workdir.PROJECT), "COLUMNS": "100"}
        cache = {} if self.home is None else {"PGDUEL_HOME": str(self.home)}
        return subprocess.Popen(
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | own | cache,
            cwd=workdir.PROJECT,
            start_new_session=True,
        )


def ended(process: subprocess.Popen[str]) -> Ended:
    """Wait for a command that was started."""
    out, err = process.communicate()
    return Ended(process.returncode, out, err)


def told(ended: Ended, file: Path, status: int) -> Any:
    """Return what a command wrote to its --json FILE, having ended with this status."""
    assert ended.status == status, ended.out + ended.err
    return json.loads(file.read_text())
