r"""Messages of a psql script: the texts that psql would send, each with its COPY data.

Backslash commands that only change psql's output are ignored. Those that read data or statements from elsewhere are
rejected, because a replay without these would be another case.
"""

import re
from dataclasses import dataclass

from fuzz.errors import CaseError
from fuzz.sources.scripts.psql import BLANK, Blocks, Token, depth_after, tokens
from fuzz.triage.reproducer.copy_text import (
    CLOSE_SPOOL,
    SPOOL_VARIABLE,
    Spool,
    original_of_server_file,
    original_of_slash_copy,
    reads_data,
)
from fuzz.triage.reproducer.quoting import read_sql_literal

_ONLY_PRINTING = re.compile(r"\\(?:[!.aftx]|echo|encoding|errverbose|o|pset|qecho|set|setenv|timing|unset|warn)")
_GEXEC = re.compile(r"\s*SELECT\s+((?:[eE]'(?:[^'\\]|\\.|'')*')|'(?:[^']|'')*')\s*", re.DOTALL)
_END_OF_DATA = re.compile(r"^\\\.$", re.MULTILINE)
_REFERENCE = re.compile(r""":['"]?(\w+)""")
_REST_OF_LINE = re.compile(r"[ \t]*\n?")


@dataclass(frozen=True, slots=True)
class PsqlMessage:
    r"""A text that psql sends as one message: one statement, or several that are separated by \;."""

    sql: str
    data: bytes | None
    line: int


def read_messages(
    script: str, start: int = 0, stop: int | None = None, *, inline_data: bool = True
) -> list[PsqlMessage]:
    """Return the messages of the script, or of a part. Raises CaseError with the line."""
    reader = _Reader(script, len(script) if stop is None else stop, inline_data=inline_data)
    return reader.read(start)


class _Reader:
    def __init__(self, script: str, stop: int, *, inline_data: bool) -> None:
        self._script = script
        self._stop = stop
        self._inline_data = inline_data
        self._messages: list[PsqlMessage] = []
        self._pieces: list[Token] = []
        self._depth = 0
        self._blocks = Blocks()
        self._variables: set[str] = set()  # that the script sets
        self._writing = False
        self._spool: Spool | None = None

    def read(self, at: int) -> list[PsqlMessage]:
        while at < self._stop:
            token = next(tokens(self._script, at, self._stop))
            if token.kind == "command":
                at = self._command(token)
            elif token.kind == "end" and not self._depth and not self._blocks.open:
                at = self._semicolon(token) if self._solid else self._next_line(token.start + 1)
            elif token.kind == "broken":
                raise self._error(token.start, f"the quotation or comment that {token.text} opens is never closed")
            else:
                self._require_value(token)
                self._depth = depth_after(self._depth, token)
                self._blocks.add(token)
                self._pieces.append(token)
                at = token.start + len(token.text)
        if self._solid:
            self._finish(self._text.rstrip(), None)
        return self._messages

    @property
    def _text(self) -> str:
        return "".join(";" if piece.kind == "joint" else piece.text for piece in self._pieces)

    @property
    def _solid(self) -> bool:
        return any(piece.kind not in BLANK for piece in self._pieces)

    def _semicolon(self, token: Token) -> int:
        sql = self._text
        at = self._next_line(token.start + 1)
        if self._spool is not None or not (self._inline_data and reads_data(sql)):
            self._finish(original_of_server_file(sql), None)
            return at
        end = _END_OF_DATA.search(self._script, at, self._stop)
        if end is None:
            raise self._error(token.start, "the COPY data below this statement must end with a line \\.")
        self._finish(sql, self._script[at : end.start()].encode())
        return self._next_line(end.end())

    def _finish(self, sql: str, data: bytes | None) -> None:
        line = self._line(self._pieces[0].start) if self._pieces else 0
        if self._spool is not None:
            data, self._spool = self._spooled(line), None
        self._messages.append(PsqlMessage(sql, data, line))
        self._pieces, self._depth, self._blocks = [], 0, Blocks()

    def _spooled(self, line: int) -> bytes:
        assert self._spool is not None
        try:
            return self._spool.data
        except ValueError as error:
            raise CaseError(f"line {line}: the data above are not base64 ({error})") from error

    def _command(self, token: Token) -> int:
        """Take a backslash command, which is the rest of its line."""
        command = token.text.rstrip()
        name = command.split()[0]
        if copied := original_of_slash_copy(command):
            self._finish(copied, None)
        elif name == "\\gexec" and (match := _GEXEC.fullmatch(self._text)):
            self._finish(read_sql_literal(match[1]), None)
        elif name == "\\g" and command == name:
            self._finish(self._text, None)
        elif not _ONLY_PRINTING.fullmatch(name) or self._solid:
            raise self._error(token.start, f"{name} cannot be replayed here")
        else:
            self._pieces = []
            if name == "\\set":
                self._variables.update(command.split()[1:2])
                self._variables.discard(SPOOL_VARIABLE)
            self._spool_command(name, command)
        return self._next_line(token.start + len(token.text))

    def _require_value(self, token: Token) -> None:
        """Raise CaseError if psql would replace the token by a variable's value."""
        found = _REFERENCE.match(self._script, token.start) if token.kind == "variable" else None
        if found and found[1] in self._variables:
            raise self._error(token.start, f"{found[0]} is a variable of psql; write its value instead")

    def _spool_command(self, name: str, command: str) -> None:
        if name == CLOSE_SPOOL:
            self._writing = command != name
            self._spool = Spool(command) if self._writing else self._spool
        elif name == "\\qecho" and self._writing and self._spool is not None:
            self._spool.write(command)

    def _next_line(self, at: int) -> int:
        match = _REST_OF_LINE.match(self._script, at, self._stop)
        return match.end() if match else at

    def _line(self, position: int) -> int:
        return self._script.count("\n", 0, position) + 1

    def _error(self, position: int, what: str) -> CaseError:
        return CaseError(f"line {self._line(position)}: {what}")
