"""The tree of errors. Each message is one line: what failed, why, and what to do."""

from pathlib import Path
from typing import ClassVar, Final

SHOWN: Final = 300  # characters of a line, which a patched program may make as long as it likes


class PgduelError(Exception):
    """Base of all errors that end a command. The command line prints the message and exits with `exit_code`."""

    exit_code = 2


class SourceError(PgduelError):
    """A base, series or patch that cannot be read or does not apply."""


class BuildError(PgduelError):
    """A tree that does not compile, or a missing requirement of compilation."""


class CompileError(BuildError):
    """A tree whose source does not compile, or not to a server that runs."""


class ServerError(PgduelError):
    """A cluster that cannot be created, started or reached."""


class StorageError(PgduelError):
    """A result that cannot be stored: the disk is full, or permissions are missing."""


class TransientError(PgduelError):
    """A failure that may pass, so that another try is worthwhile. `passed` is the line for the user when it has."""

    passed: ClassVar[str]


class DiskFull(StorageError, TransientError):
    """A disk without room for a file, or for a server."""

    passed = "there is room again"


class CaseError(PgduelError):
    """A requested case, script or generator that cannot be run."""


class CanaryMissed(PgduelError):
    """A planted bug that its oracle did not report, so no result of the run can be trusted."""

    exit_code = 3


def first_line(text: str, otherwise: str = "no message") -> str:
    """Return the first line of a program's or server's output."""
    return (text.strip().splitlines() or [otherwise])[0]


def last_line(text: str, otherwise: str = "no message") -> str:
    """Return the last line of a program's output, which often has the reason for its end."""
    return (text.strip().splitlines() or [otherwise])[-1]


def text_of(file: Path, error: type[PgduelError], remedy: str) -> str:
    """Return the text of a file that the user names. Raises `error` with the remedy."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as reason:
        raise error(f"cannot read {file} ({reason.strerror}); {remedy}") from reason
    except UnicodeDecodeError as reason:
        raise error(f"cannot read {file} (it is no text in UTF-8); {remedy}") from reason
