r"""COPY FROM STDIN in a psql script, in the simplest form that preserves each byte.

There are three forms:

- Inline data below the statement, up to a line `\.`. This is the most readable form. But if the statement fails before
  it reads the data, psql executes the data as commands. So it is used only for statements that should succeed, and for
  text that psql sends unchanged.
- A file, `$PGDUEL_DATA`, which \qecho writes line by line, and psql's \copy sends.
- The same file, read by the server, if the data has something at which psql would stop (a line `\.`, a zero byte).
  That needs the privilege to read files, which the script gives to the ordinary role.
"""

import base64
import re
from itertools import pairwise

from fuzz.sources.scripts.psql import BLANK, one_statement, tokens
from fuzz.triage.reproducer.markers import has_marker
from fuzz.triage.reproducer.quoting import psql_literal, read_psql_literal, sql_literal
from oracles.model.case import Kind, Step

SPOOL_VARIABLE = "pgduel_data"
OPEN_SPOOL = '\\o |cat > "$PGDUEL_DATA"'
OPEN_SPOOL_BASE64 = '\\o |base64 -d > "$PGDUEL_DATA"'
CLOSE_SPOOL = "\\o"
END_OF_DATA = "\\."
WRITE = "\\qecho "
WRITE_NO_NEWLINE = "\\qecho -n "
WIDTH = 76  # characters of base64
LINES = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")  # with any line end that COPY accepts

_COPY_FROM_STDIN = re.compile(r"\s*COPY\b.*\bFROM\s+STDIN\b", re.IGNORECASE | re.DOTALL)
_ONE_LINE = re.compile(r"COPY ([^\n]*?) FROM STDIN\b([^\n]*)", re.IGNORECASE)
_ORIGINAL = "  -- "  # before a statement with other capitals than pgduel's, at the end of its \copy, as a comment
_SLASH_COPY = re.compile(
    rf"""\\copy ([^\n]*?) FROM PROGRAM 'cat "\$PGDUEL_DATA"'(?:[^\n]*{_ORIGINAL}(COPY [^\n]*)|([^\n]*))""",
    re.IGNORECASE,
)
SERVER_FILE = f":'{SPOOL_VARIABLE}'"
_SERVER_FILE = re.compile(rf"{SERVER_FILE}(?: /\* (\w+) \*/)?")
_STOPS_PSQL = re.compile(rb"^\\\.\r?$|\0", re.MULTILINE)


def reads_data(sql: str) -> bool:
    """Return whether psql would read data from the script after this statement."""
    return _COPY_FROM_STDIN.match(sql) is not None


def statement_text(sql: str) -> str:
    r"""Return a statement for psql: with a semicolon, or as a string for \gexec if psql would change it."""
    if one_statement(sql) and not has_marker(sql):
        return f"{sql};"
    return f"SELECT {sql_literal(sql)} \\gexec"


def copy_text(step: Step) -> str:
    """Return statement and data of a step; `copy_data` must not be None."""
    data = step.copy_data or b""
    if _fits_inline(step, data):
        return f"{step.sql};\n{data.decode()}{END_OF_DATA}"
    statement = _statement_on_spool(step.sql, data)
    readable = '\n\\! chmod a+r "$PGDUEL_DATA"' if SERVER_FILE in statement else ""
    return f"{spool_text(step.sql, data)}{readable}\n{statement}"


def _fits_inline(step: Step, data: bytes) -> bool:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return (
        step.kind is Kind.COPY_IN
        and not step.may_fail
        and reads_data(step.sql)
        and not _is_binary(step.sql)
        and statement_text(step.sql) == f"{step.sql};"
        and text[-1:] in ("", "\n")
        and "\r" not in text
        and _STOPS_PSQL.search(data) is None
        and not has_marker(text)
    )


def _is_binary(sql: str) -> bool:
    return re.search(r"\bbinary\b", sql, re.IGNORECASE) is not None


def _statement_on_spool(sql: str, data: bytes) -> str:
    plain = one_statement(sql) and not has_marker(sql)
    one_line = _ONE_LINE.fullmatch(sql) if plain else None
    if one_line and (_is_binary(sql) or _STOPS_PSQL.search(data) is None):
        written = f"""\\copy {one_line[1]} FROM PROGRAM 'cat "$PGDUEL_DATA"'{one_line[2]}"""
        for each in (written, f"{written}{_ORIGINAL}{sql}"):
            if original_of_slash_copy(each) == sql:
                return each
    written = from_server_file(_message_text(sql))
    if SERVER_FILE in written and original_of_server_file(from_server_file(sql)) == sql:
        return f"{written};"
    return without_data(sql)


def _message_text(sql: str) -> str:
    r"""Return the text that psql, given a semicolon, sends as this message of several statements; "" if there is none.

    It has \; for each semicolon of the message.
    """
    found = list(tokens(sql))
    as_one = "".join("," if token.kind == "end" else token.text for token in found)
    if not one_statement(as_one) or has_marker(sql):
        return ""
    return "".join("\\;" if token.kind == "end" else token.text for token in found)


def without_data(sql: str) -> str:
    """Return a statement without data, even if it reads some."""
    if not reads_data(sql):
        return statement_text(sql)
    return f"SELECT {sql_literal(sql)} \\gexec\n{END_OF_DATA}"


def from_server_file(sql: str) -> str:
    """Return the COPY statement with the file instead of STDIN, which the server reads."""
    solid = [token for token in tokens(sql) if token.kind not in BLANK]
    found = [now for before, now in pairwise(solid) if (before.text.lower(), now.text.lower()) == ("from", "stdin")]
    if len(found) != 1:
        return sql
    (stdin,) = found
    original = "" if stdin.text == "STDIN" else f" /* {stdin.text} */"
    return f"{sql[: stdin.start]}{SERVER_FILE}{original}{sql[stdin.start + len(stdin.text) :]}"


def original_of_server_file(sql: str) -> str:
    """Return the original statement of `from_server_file`."""
    return _SERVER_FILE.sub(lambda found: found[1] or "STDIN", sql, count=1)


def original_of_slash_copy(line: str) -> str | None:
    r"""Return the original statement of a \copy that pgduel wrote, or None for any other \copy."""
    match = _SLASH_COPY.fullmatch(line)
    return match and (match[2] or f"COPY {match[1]} FROM STDIN{match[3]}")


def spool_text(sql: str, data: bytes) -> str:
    """Return the commands that write the data to the file."""
    if _is_binary(sql) or b"\0" in data:
        encoded = base64.b64encode(data).decode()
        lines = [WRITE + encoded[start : start + WIDTH] for start in range(0, len(encoded), WIDTH)]
        return "\n".join((OPEN_SPOOL_BASE64, *lines, CLOSE_SPOOL))
    lines = [_written(line) for line in LINES.findall(data)]
    return "\n".join((OPEN_SPOOL, *lines, CLOSE_SPOOL))


def _written(line: bytes) -> str:
    if line.endswith(b"\n"):
        return WRITE + psql_literal(line[:-1])
    return WRITE_NO_NEWLINE + psql_literal(line)


class Spool:
    """The data of the file, read back from the commands that write it."""

    def __init__(self, opening: str) -> None:
        self._encoded = "base64" in opening
        self._pieces: list[bytes] = []

    def write(self, command: str) -> None:
        r"""Append the data of a \qecho command."""
        argument = command.removeprefix(WRITE).removeprefix("-n ")
        if self._encoded:
            self._pieces.append(argument.encode())
        else:
            newline = b"" if command.startswith(WRITE_NO_NEWLINE) else b"\n"
            self._pieces.append(read_psql_literal(argument) + newline)

    @property
    def data(self) -> bytes:
        """Return the data. Raises ValueError for invalid base64."""
        written = b"".join(self._pieces)
        return base64.b64decode(written, validate=True) if self._encoded else written
