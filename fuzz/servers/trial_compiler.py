"""Compiler of one changed file at a time, with the commands and the generated files of a build.

It takes a second. A whole build of the change takes much longer, and needs none of it if the file does not compile.
"""

import json
import shlex
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from fuzz.errors import BuildError, first_line
from fuzz.servers.account import server_account
from fuzz.servers.compile import compile_file

_SOURCE: Final = "../source/"  # of the paths in commands, which are relative to `build`
_LEFT_OUT: Final = frozenset({"ccache", "-MD"})
_LEFT_OUT_WITH_VALUE: Final = frozenset({"-o", "-MQ", "-MF"})
# Debug information has columns of the source. GCC 14 and Clang refuse these violations of C; older compilers warn.
_ERRORS: Final = ("implicit-function-declaration", "implicit-int", "int-conversion", "incompatible-pointer-types")
_ADDED: Final = ("-g0", "-fdiagnostics-color=never", *(f"-Werror={error}" for error in _ERRORS))


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a changed file: the first error, or whether its object files are those of the unchanged file."""

    error: str = ""
    equal: bool = False


class TrialCompiler:
    """A compiler of files in home/source, from home/build. Its user alone changes these files."""

    def __init__(self, home: Path) -> None:
        """Read the build's commands. Raises BuildError."""
        self._home = home
        try:
            with server_account().file_access():
                listed = json.loads((home / "build" / "compile_commands.json").read_text())
        except (OSError, ValueError) as error:
            raise BuildError(f"cannot read the compiler's commands in {home}: {error}") from error
        self._commands: dict[str, list[list[str]]] = defaultdict(list)
        self._file_of: dict[str, str] = {}  # by object file
        for each in listed:
            file = each["file"].removeprefix(_SOURCE)
            self._commands[file].append(_command(each["command"]))
            self._file_of[each["output"]] = file
        self._unchanged: dict[str, list[bytes]] = {}

    def trial(self, file: str, text: str) -> Trial:
        """Compile a file with another text.

        A header is compiled with one file that includes it, so it never counts as equal. Raises BuildError.
        """
        compiled = file if file in self._commands else self._including.get(file)
        if compiled is None:
            return Trial()
        if compiled not in self._unchanged:
            error, self._unchanged[compiled] = self._objects(compiled)
            if error:
                raise BuildError(f"the unchanged {compiled} does not compile: {error}")
        path = self._home / "source" / file
        unchanged = path.read_bytes()
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        try:
            error, objects = self._objects(compiled)
        finally:
            path.write_bytes(unchanged)
        return Trial(error, equal=compiled == file and objects == self._unchanged[compiled])

    @cached_property
    def _including(self) -> dict[str, str]:
        """Return a file that includes each header, by header. Raises BuildError."""
        command = ["ninja", "-C", str(self._home / "build"), "-t", "deps"]
        done = subprocess.run(command, capture_output=True, text=True, **server_account().options())
        if done.returncode:
            raise BuildError(f"cannot list the headers of {self._home}: {first_line(done.stderr)}")
        including: dict[str, str] = {}
        file = None
        for line in done.stdout.splitlines():
            if not line.startswith(" "):
                file = self._file_of.get(line.partition(":")[0])
            elif file is not None and line.strip().startswith(_SOURCE):
                including.setdefault(line.strip().removeprefix(_SOURCE), file)
        return including

    def _objects(self, file: str) -> tuple[str, list[bytes]]:
        """Return the first error, and the object files of a file, one for each of its commands without an error."""
        objects: list[bytes] = []
        product = self._home / "trial.o"
        for command in self._commands[file]:
            done = compile_file(command, product, self._home / "build")
            if done.returncode:
                lines = done.stderr.splitlines()
                return next((line for line in lines if "error:" in line), first_line(done.stderr)), objects
            objects.append(product.read_bytes())
        return "", objects


def _command(text: str) -> list[str]:
    """Return the words of a compiler's command, without its products and the compiler's cache."""
    words = iter(shlex.split(text))
    kept = []
    for word in words:
        if word in _LEFT_OUT_WITH_VALUE:
            next(words)
        elif word not in _LEFT_OUT:
            kept.append(word)
    return [*kept, *_ADDED]
