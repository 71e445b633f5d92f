"""The `pgduel` command in a forked process, for tests of arguments, output and exit status alone."""

import importlib
import os
import sys
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from multiprocessing.reduction import DupFd
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from tests.cli.command import Command, Ended
from tests.forking import FORKING


class _Inherited:
    """A file descriptor that a forked process shares, maybe under another number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> Any:
        return _received, (DupFd(self.number),)


def _received(duplicate: Any) -> _Inherited:
    return _Inherited(duplicate.detach())


@dataclass(frozen=True)
class PreloadedCommand(Command):
    """A command in a forked process. With `anew`, that process imports pgduel's own modules in the command's order."""

    anew: bool = False

    def __call__(self, *arguments: str | Path) -> Ended:
        """Run the command to its end."""
        with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
            process = self.forked(arguments, out.fileno(), err.fileno())
            process.join()
            out.seek(0)
            err.seek(0)
            assert process.exitcode is not None
            return Ended(process.exitcode, out.read(), err.read())

    def forked(self, arguments: tuple[str | Path, ...], out: int, err: int, **variables: str) -> ForkServerProcess:
        """Start the command in its own session, with these file descriptors for its output."""
        # The application of fuzz.cli.app has each command that was ever imported, not only the one that is run.
        dropped = ("fuzz", "oracles") if self.anew else ("fuzz.cli",)
        environment = dict(os.environ) | self.variables | variables
        streams = _Inherited(out), _Inherited(err)
        words = [*map(str, arguments)]
        process = FORKING.Process(target=_run, args=(words, environment, self.project, dropped, streams))
        process.start()
        return process


def _run(
    words: list[str],
    environment: dict[str, str],
    project: Path,
    dropped: tuple[str, ...],
    streams: tuple[_Inherited, _Inherited],
) -> None:
    """Turn this process into one of the command, and run it."""
    os.setsid()
    os.environ.clear()  # the variables when the server was started, maybe those of another test
    os.environ.update(environment)
    os.chdir(project)
    for number, stream in enumerate(streams, 1):
        os.dup2(stream.number, number)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  # open until the process ends
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.argv = ["pgduel", *words]
    for name in [*sys.modules]:
        if name in dropped or name.startswith(tuple(f"{package}." for package in dropped)):
            del sys.modules[name]
    importlib.import_module("fuzz.cli").main()
