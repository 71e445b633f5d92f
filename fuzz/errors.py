"""The error tree. Each message is one line: what failed, and what to do about it."""


class PgduelError(Exception):
    """Base of all errors that end a command; the command line prints the message and exits with `exit_code`."""

    exit_code = 2


class SourceError(PgduelError):
    """A base, series or patch cannot be had or does not apply."""


class BuildError(PgduelError):
    """A tree does not compile, or the machine lacks what compiling needs."""


class ServerError(PgduelError):
    """A cluster cannot be made, started or reached."""


class StorageError(PgduelError):
    """What was found cannot be kept: a disk is full, or not ours to write to."""


class CaseError(PgduelError):
    """A case, script or generator that was asked for cannot be run."""


class CanaryMissed(PgduelError):
    """An oracle did not report a bug planted for it: no result of this run can be trusted."""

    exit_code = 3


def first_line(said: str, otherwise: str = "no message") -> str:
    """Return the first line of what a program or server said."""
    return (said.strip().splitlines() or [otherwise])[0]


def last_line(said: str, otherwise: str = "no message") -> str:
    """Return the last line of what a program said, where many tell why they end."""
    return (said.strip().splitlines() or [otherwise])[-1]
