"""The `pgduel` command in a process, as users run it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from fuzz import workdir
from fuzz.campaign.catalog import opened
from fuzz.campaign.sqlite import FILE

EQUALS = ("--arm", "a=upstream", "--arm", "b=upstream")


@dataclass(frozen=True)
class Ended:
    """Exit status and output of a command."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Command:
    """The command of a checkout with its own directory of campaigns, and with its own cache if `home` is set."""

    campaigns: Path
    home: Path | None = None
    project: Path = workdir.PROJECT
    around: tuple[str, ...] = ()  # a command that runs another one

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start the command in its own session, as a terminal does."""
        return self._python(["-m", "fuzz", *map(str, arguments)])

    def __call__(self, *arguments: str | Path) -> Ended:
        """Run the command to its end."""
        return self.run(["-m", "fuzz", *map(str, arguments)])

    def run(self, arguments: list[str]) -> Ended:
        """Run Python to its end, in the command's environment."""
        return ended(self._python(arguments))

    @property
    def variables(self) -> dict[str, str]:
        """Return the command's own environment variables."""
        own = {"PGDUEL_CAMPAIGNS": str(self.campaigns), "PYTHONPATH": str(self.project), "COLUMNS": "100"}
        return own if self.home is None else own | {"PGDUEL_HOME": str(self.home)}

    def _python(self, arguments: list[str]) -> subprocess.Popen[str]:
        # Tests may run in the background of a shell, where programs inherit that SIGINT is ignored.
        return subprocess.Popen(
            [*self.around, "env", "--default-signal=INT", sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | self.variables,
            cwd=self.project,
            start_new_session=True,
        )


def ended(process: subprocess.Popen[str]) -> Ended:
    """Wait for a started command."""
    out, err = process.communicate()
    return Ended(process.returncode, out, err)


def acting(process: subprocess.Popen[str], line: str, action: Callable[[], object]) -> Ended:
    """Wait for the end of a command, and act each time it prints a line with this text."""
    assert process.stdout is not None
    assert process.stderr is not None
    printed = []
    with process:
        for each in process.stdout:
            printed.append(each)
            if line in each:
                action()
        errors = process.stderr.read()
    return Ended(process.returncode, "".join(printed), errors)


def json_of(ended: Ended, file: Path, status: int) -> Any:
    """Return the document that a command wrote to its --json FILE. Require this exit status."""
    assert ended.status == status, ended.out + ended.err
    assert file.exists(), ended.out + ended.err
    return json.loads(file.read_text())


def await_cases(process: subprocess.Popen[str], pgduel: Command) -> None:
    """Wait until the first campaign, which may be resumed, has run more cases."""
    directory = pgduel.campaigns / "1"
    before = _cases(directory)
    while _cases(directory) == before:
        assert process.poll() is None, process.communicate()
        time.sleep(0.2)


def _cases(directory: Path) -> int:
    if not (directory / FILE).exists():
        return 0
    with opened(directory) as store:
        return store.counters.cases.total()


def addresses_of(process: psutil.Process) -> set[str]:
    """Return the addresses at which a process and its children accept connections."""
    processes = [process, *process.children(recursive=True)]
    sockets = (socket for each in processes for socket in each.net_connections("inet"))
    return {socket.laddr.ip for socket in sockets if socket.status == psutil.CONN_LISTEN}
