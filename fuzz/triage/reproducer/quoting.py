"""Literals of SQL and of psql's backslash commands."""

import re

_SQL_ESCAPES = {"\\": "\\\\", "'": "''", "\n": "\\n", "\r": "\\r"}
_PSQL_ESCAPES = {b"\\": b"\\\\", b"'": b"''", b"\n": b"\\n", b"\r": b"\\r", b"\t": b"\\t"}
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


def sql_literal(text: str) -> str:
    """Return a literal of the text on one line, valid under any setting of standard_conforming_strings."""
    quoted = re.sub(r"[\\'\n\r]", lambda match: _SQL_ESCAPES[match.group()], text)
    return ("E'" if "\\" in quoted else "'") + quoted + "'"


def read_sql_literal(literal: str) -> str:
    """Return the text of a literal made by `sql_literal`; a text without quotes is returned unchanged."""
    if literal[:1] == "'":
        return literal[1:-1].replace("''", "'")
    if literal[:2].lower() == "e'":
        return re.sub(r"\\(.)|''", lambda match: _letter(match[1]), literal[2:-1], flags=re.DOTALL)
    return literal


def _letter(escaped: str | None) -> str:
    return "'" if escaped is None else _LETTERS.get(escaped, escaped)


def psql_literal(data: bytes) -> str:
    """Return these bytes as an argument of a backslash command; none of them may be zero."""
    visible = re.sub(rb"[\\'\n\r\t]", lambda match: _PSQL_ESCAPES[match.group()], data)
    text = visible.decode("utf-8", "surrogateescape")
    return "'" + re.sub("[\udc80-\udcff]", lambda match: f"\\x{ord(match.group()) - 0xDC00:02x}", text) + "'"


def read_psql_literal(literal: str) -> bytes:
    """Return the bytes of an argument made by `psql_literal`."""
    plain = literal[1:-1].encode()
    return re.sub(rb"\\x([0-9a-fA-F]{1,2})|\\(.)|''", _byte, plain, flags=re.DOTALL)


def _byte(match: "re.Match[bytes]") -> bytes:
    if match[1]:
        return bytes([int(match[1], 16)])
    if match[2]:
        return _LETTERS.get(match[2].decode("latin-1"), match[2].decode("latin-1")).encode("latin-1")
    return b"'"
