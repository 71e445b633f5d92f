"""Output of foreign text: text of servers, patches, file names and other programs. Standard library only.

Foreign text may contain escape sequences, which would change the terminal's title, clear the screen or hide lines.
`visible` replaces them. All output passes it: Rich output in `fuzz.report.console`, lines without Rich in `tell` and
`note`, and tracebacks, warnings and stray writes in `guard`.
"""

import codecs
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, TextIO, cast

from fuzz.errors import PgduelError

# C0 except newline and tab, DEL, C1, marks and overrides of direction, separators of lines and paragraphs, surrogates.
# The latter stand for bytes of file names that are not UTF-8 and cannot be printed.
_HIDDEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_CHUNK: Final = 1 << 16
_BYTES: Final = range(0xDC80, 0xDD00)  # to which surrogateescape decodes bytes


def visible(text: str) -> str:
    r"""Return text with control characters as escapes such as \x1b or \u202e."""
    return _HIDDEN.sub(_escape, text)


def visible_line(text: str) -> str:
    r"""Return text with all control characters as escapes, so that it is one line: \x0a and \x09, too."""
    return visible(text).replace("\n", r"\x0a").replace("\t", r"\x09")


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code in _BYTES:
        code -= 0xDC00
    return rf"\x{code:02x}" if code < 0x100 else rf"\u{code:04x}"


def tell(line: str) -> None:
    """Print a line."""
    print(visible(line), file=terminal_of(sys.stdout))


def note(line: str) -> None:
    """Print a message of pgduel to stderr, as one line: it may have names of files."""
    print(visible_line(f"pgduel: {line}"), file=terminal_of(sys.stderr), flush=True)


def write_exactly(text: str) -> None:
    """Write a file's text to stdout: the exact bytes to a file or pipe, visible text to a terminal.

    Raises PgduelError.
    """
    stream = terminal_of(sys.stdout)
    if stream.isatty():
        stream.write(visible(text))
        return
    try:
        stream.flush()
        stream.buffer.write(text.encode())
        stream.buffer.flush()
    except BrokenPipeError as error:
        raise reader_ended() from error


def run_visibly(command: Sequence[str], **options: Any) -> int:
    """Run a program; return its exit status. If stdout is a terminal, copy the program's output there as visible text.

    `options` are those of subprocess.
    """
    stream = terminal_of(sys.stdout)
    if not stream.isatty():
        return subprocess.run(command, **options).returncode
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options) as process:
        assert process.stdout is not None
        while data := os.read(process.stdout.fileno(), _CHUNK):
            stream.write(visible(decoder.decode(data)))
            stream.flush()
    return process.returncode


def guard() -> None:
    """Replace sys.stdout and sys.stderr by streams that write visible text. A closed one discards it."""
    sys.stdout = cast(TextIO, _Guard(sys.stdout or _discarding()))
    sys.stderr = cast(TextIO, _Guard(sys.stderr or _discarding()))


def discard_output() -> None:
    """Discard all further output to stdout, and what waits in its buffer, so that the exit does not fail."""
    with _discarding() as nothing:
        os.dup2(nothing.fileno(), terminal_of(sys.stdout).fileno())


def reader_ended() -> PgduelError:
    """Discard all further output, and return the error. Typer would exit with status 1, which means findings."""
    discard_output()
    return PgduelError("the program that reads the output has ended; let it read all, or write to a file")


def _discarding() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")


def terminal_of(stream: TextIO) -> TextIO:
    """Return the stream beneath guards and beneath the proxies of Rich's Live display."""
    while (beneath := getattr(stream, "rich_proxied_file", None)) is not None:
        stream = beneath
    return stream


class _Guard:
    """A text stream that writes visible text to another one. Rich uses that one directly, as it styles text itself."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        """Write visible text."""
        self.rich_proxied_file.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write visible lines."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)
