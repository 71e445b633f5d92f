"""The user's files with generators and oracles of their own: `--generator FILE.py`, `--oracle FILE.py`.

Each process of a campaign imports them from the text that the campaign has read at its start. The store keeps that
text, so a finding can be replayed whatever becomes of the file.
"""

import hashlib
import inspect
import linecache
import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import CodeType, MappingProxyType, ModuleType
from typing import Any, Final

from fuzz.errors import CaseError, text_of
from fuzz.execution.modes import composed
from fuzz.generators.generator import Generator
from fuzz.output import visible_line
from fuzz.sources.workloads import GENERATOR_FILES, all_workloads
from oracles.model.discovery import instances_below
from oracles.model.oracle import ORACLE_FILES, Canary, Oracle, all_oracles

SUFFIX: Final = ".py"
_NAME: Final = re.compile(r"\w+")  # it is part of a case's identity


class FileKind(StrEnum):
    """The classes that a file is read for. Others in it have no effect."""

    GENERATOR = "generator"
    ORACLE = "oracle"


_PREFIXES: Final = MappingProxyType({FileKind.GENERATOR: GENERATOR_FILES, FileKind.ORACLE: ORACLE_FILES})
_BASES: Final[Mapping[FileKind, Any]] = MappingProxyType({FileKind.GENERATOR: Generator, FileKind.ORACLE: Oracle})


@dataclass(frozen=True, slots=True)
class UserFile:
    """A file with the text that it had when it was read."""

    kind: FileKind
    path: str  # absolute
    text: str

    @property
    def module(self) -> str:
        """Return the name of the file's module. Another text has another one."""
        digest = hashlib.sha256("\0".join((self.path, self.text)).encode()).hexdigest()
        return f"{_PREFIXES[self.kind]}.m{digest[:16]}"


def read_file(kind: FileKind, path: str) -> UserFile:
    """Read a file of the command line. Raises CaseError."""
    if not path.endswith(SUFFIX):
        raise CaseError(f"--{kind} {path}: give a file NAME.py with your own {kind}; pgduel's own need no option")
    file = Path(os.path.expanduser(path)).resolve()
    return UserFile(kind, str(file), text_of(file, CaseError, f"give --{kind} a file of Python"))


def load(file: UserFile) -> tuple[str, ...]:
    """Import a file, once in a process, and return the names of its generators or oracles. Raises CaseError."""
    if file.module not in sys.modules:
        taken = set(all_workloads()) if file.kind is FileKind.GENERATOR else {each.name for each in all_oracles()}
        try:
            _import(file)
            _require_usable(file, taken)
        except Exception:
            sys.modules.pop(file.module, None)
            raise
    return tuple(each.name for each in _instances(file))


def read_and_load(kind: FileKind, paths: Iterable[str]) -> tuple[UserFile, ...]:
    """Read and import files of the command line. Raises CaseError."""
    files = tuple(dict.fromkeys(read_file(kind, path) for path in paths))
    for file in files:
        load(file)
    return files


def load_recorded(files: Sequence[UserFile]) -> Iterator[str]:
    """Load the files of a campaign as they were, and yield a line for each that is another one today."""
    for file in files:
        load(file)
        if line := _change(file):
            yield f"{line}; this campaign keeps the file with which it began"


def _change(file: UserFile) -> str:
    """Return what happened to a file since it was read, or ""."""
    try:
        now = Path(file.path).read_bytes()
    except OSError as error:
        return f"{file.path} cannot be read any more ({error.strerror})"
    return "" if now == file.text.encode() else f"{file.path} has changed"


def _import(file: UserFile) -> None:
    """Execute a file as a module of its own. Raises CaseError."""
    module = ModuleType(file.module)
    module.__file__ = file.path
    sys.modules[file.module] = module  # dataclasses need it
    # Tracebacks show these lines, also if the file has changed meanwhile.
    linecache.cache[file.path] = (len(file.text), None, file.text.splitlines(keepends=True), file.path)
    try:
        exec(_compiled(file), vars(module))
    except SyntaxError as error:
        where = f"{error.filename}, line {error.lineno}" if error.filename else file.path
        raise CaseError(f"{where}: {error.msg}; correct the file") from error
    except (Exception, SystemExit) as error:
        raise CaseError(error_in_file(error) or f"cannot import {file.path}: {error!r}") from error


def _compiled(file: UserFile) -> CodeType:
    """Return a file's code. Raises SyntaxError."""
    try:
        return compile(file.text, file.path, "exec")
    except ValueError as error:  # null bytes; before Python 3.11.4, that was no SyntaxError
        raise SyntaxError(str(error)) from error


def error_in_file(error: BaseException) -> str:
    """Return file, line and text of an error that passed through a file of the user; "" for others."""
    frames = traceback.walk_tb(error.__traceback__)
    prefixes = tuple(f"{prefix}." for prefix in _PREFIXES.values())
    passed = [(frame, line) for frame, line in frames if str(frame.f_globals.get("__name__")).startswith(prefixes)]
    if not passed:
        return ""
    frame, line = passed[-1]
    return visible_line(f"{frame.f_code.co_filename}, line {line}: {type(error).__name__}: {error}; correct the file")


def _instances(file: UserFile) -> tuple[Any, ...]:
    found: tuple[Any, ...] = instances_below(_BASES[file.kind], file.module)
    return found


def _require_usable(file: UserFile, taken: set[str]) -> None:
    """Check the classes of an imported file. Raises CaseError."""
    for kind in _classes(file):
        where = f"{file.path}: class {kind.__name__}"
        if inspect.isabstract(kind):
            raise CaseError(f"{where} lacks {', '.join(sorted(kind.__abstractmethods__))}; define it")
        name = getattr(kind, "name", None)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise CaseError(f"{where} lacks a name; give it name = ..., of letters, digits and _")
        if name in taken:
            raise CaseError(f"{where}: there is another {file.kind} {name}; give yours another name")
        taken.add(name)
        _require_attributes(where, kind)
    try:
        if not _instances(file):
            base = _BASES[file.kind]
            raise CaseError(
                f"{file.path} defines no {file.kind}; give it a subclass of {base.__module__}.{base.__name__}"
            )
    except TypeError as error:
        raise CaseError(f"{file.path}: no class of {file.kind}s may need arguments: {error}") from error


def _classes(file: UserFile) -> list[Any]:
    """Return the file's own subclasses, except those that others in it extend."""
    base = _BASES[file.kind]
    own = [each for each in vars(sys.modules[file.module]).values() if inspect.isclass(each) and issubclass(each, base)]
    own = [each for each in dict.fromkeys(own) if each.__module__ == file.module]
    return [each for each in own if not (inspect.isabstract(each) and any(each in other.__mro__[1:] for other in own))]


def _require_attributes(where: str, kind: type) -> None:
    """Check the modes or canaries of a class. Raises CaseError."""
    needed, part = ("modes", str) if issubclass(kind, Generator) else ("canaries", Canary)
    parts = getattr(kind, needed, None)
    if not parts:
        raise CaseError(f"{where} lacks {needed}; give it at least one")
    if not isinstance(parts, tuple | list) or not all(isinstance(each, part) for each in parts):
        raise CaseError(f"{where}: {needed} must be a tuple of {part.__name__}; correct it")
    if issubclass(kind, Generator):
        try:
            for entry in kind.modes:
                composed(entry)
        except CaseError as error:
            raise CaseError(f"{where}: {error}") from error
