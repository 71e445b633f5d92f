r"""COPY FROM STDIN in a psql script, in the plainest of the forms that keep every byte.

Inline (data below the statement, up to a line `\.`) is what everybody reads best, but psql would take the data for
commands if the statement failed before it asked for them; so it serves only statements that should succeed, and text
that psql passes on as it is. Otherwise the data first go to a file, `$PGDUEL_DATA`, line by line through \qecho:
psql's \copy sends the file. What psql itself would stop at (a line `\.`, a zero byte) the server has to read from
the file, which needs the right to do so.
"""

import base64
import re

from fuzz.sources.scripts.psql import one_statement
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
LINES = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")  # any of the line ends that COPY takes

_ASKS_FOR_DATA = re.compile(r"\s*COPY\b.*\bFROM\s+STDIN\b", re.IGNORECASE | re.DOTALL)
_ONE_LINE = re.compile(r"COPY ([^\n]*?) FROM STDIN([^\n]*)")
_SLASH_COPY = re.compile(r"""\\copy ([^\n]*?) FROM PROGRAM 'cat "\$PGDUEL_DATA"'([^\n]*)""")
_SERVER_FILE = f" FROM :'{SPOOL_VARIABLE}'"
_STOPS_PSQL = re.compile(rb"^\\\.\r?$|\0", re.MULTILINE)


def asks_for_data(sql: str) -> bool:
    """Tell whether psql would read data from the script after this statement."""
    return _ASKS_FOR_DATA.match(sql) is not None


def statement_text(sql: str) -> str:
    r"""Return a statement for psql: with a semicolon, or as a string for \gexec where psql would change it."""
    if one_statement(sql) and not has_marker(sql):
        return f"{sql};"
    return f"SELECT {sql_literal(sql)} \\gexec"


def copy_text(step: Step) -> str:
    """Return statement and data of a step; `copy_data` must not be None."""
    data = step.copy_data or b""
    if _fits_inline(step, data):
        return f"{step.sql};\n{data.decode()}{END_OF_DATA}"
    return f"{spool_text(step.sql, data)}\n{_statement_on_spool(step.sql, data)}"


def _fits_inline(step: Step, data: bytes) -> bool:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return (
        step.kind is Kind.COPY_IN
        and not step.may_fail
        and asks_for_data(step.sql)
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
        if original_of_slash_copy(written) == sql:
            return written
    if plain and " FROM STDIN" in sql and original_of_server_file(from_server_file(sql)) == sql:
        return f"{from_server_file(sql)};"
    return without_data(sql)


def without_data(sql: str) -> str:
    """Return a statement for which the script has no data, even if it asks for them."""
    if not asks_for_data(sql):
        return statement_text(sql)
    return f"SELECT {sql_literal(sql)} \\gexec\n{END_OF_DATA}"


def from_server_file(sql: str) -> str:
    """Have the server read the data from the file."""
    return sql.replace(" FROM STDIN", _SERVER_FILE, 1)


def original_of_server_file(sql: str) -> str:
    """Undo `from_server_file`."""
    return sql.replace(_SERVER_FILE, " FROM STDIN", 1)


def original_of_slash_copy(line: str) -> str | None:
    r"""Return the statement that a \copy of ours stands for, or None if it is not ours."""
    match = _SLASH_COPY.fullmatch(line)
    return match and f"COPY {match[1]} FROM STDIN{match[2]}"


def spool_text(sql: str, data: bytes) -> str:
    """Return the commands that write the data to the file."""
    readable = ['\\! chmod a+r "$PGDUEL_DATA"'] if _STOPS_PSQL.search(data) and not _is_binary(sql) else []
    if _is_binary(sql) or b"\0" in data:
        encoded = base64.b64encode(data).decode()
        lines = [WRITE + encoded[start : start + WIDTH] for start in range(0, len(encoded), WIDTH)]
        return "\n".join((OPEN_SPOOL_BASE64, *lines, CLOSE_SPOOL, *readable))
    lines = [_written(line) for line in LINES.findall(data)]
    return "\n".join((OPEN_SPOOL, *lines, CLOSE_SPOOL, *readable))


def _written(line: bytes) -> str:
    if line.endswith(b"\n"):
        return WRITE + psql_literal(line[:-1])
    return WRITE_NO_NEWLINE + psql_literal(line)


class Spool:
    """Reads the commands that write the file, one after another, back into the data."""

    def __init__(self, opening: str) -> None:
        self._encoded = "base64" in opening
        self._pieces: list[bytes] = []

    def write(self, command: str) -> None:
        r"""Take a \qecho."""
        argument = command.removeprefix(WRITE).removeprefix("-n ")
        if self._encoded:
            self._pieces.append(argument.encode())
        else:
            newline = b"" if command.startswith(WRITE_NO_NEWLINE) else b"\n"
            self._pieces.append(read_psql_literal(argument) + newline)

    @property
    def data(self) -> bytes:
        """Return what was written. Raises ValueError for base64 that is none."""
        written = b"".join(self._pieces)
        return base64.b64decode(written, validate=True) if self._encoded else written
