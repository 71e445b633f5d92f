"""Messages of PostgreSQL's frontend/backend protocol, version 3, as far as pgduel sends or reads them.

Parameters and results are in text format, unless a function is given another one.
"""

import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Final

from oracles.model.observation import Message, ResultColumn

PROTOCOL_VERSION: Final = 196608
COPY_CHUNK_BYTES: Final = 1 << 16

# Fields of errors and notices about objects and positions, by code.
_NAMED_FIELDS: Final = {
    "s": "schema",
    "t": "table",
    "c": "column",
    "d": "data type",
    "n": "constraint",
    "P": "position",
    "p": "internal position",
    "q": "internal query",
}
_TEMPORARY_SCHEMA: Final = re.compile(r"\b(pg_(?:toast_)?temp)_\d+\b")

# after the column's name: table, attribute, type, type length, modifier, format
_FIELD = struct.Struct(">IhIhih")
_LEAST_KEY: Final = 8  # bytes: process number, and secret

# Types of messages from the server.
BACKEND_KEY, READY, COMMAND_COMPLETE = ord("K"), ord("Z"), ord("C")
ROW_KINDS: Final = frozenset(b"Dd")  # DataRow, CopyData
ERROR_RESPONSE, NOTICE_RESPONSE, ROW_DESCRIPTION = ord("E"), ord("N"), ord("T")
_COPY_RESPONSES: Final = {ord("G"): "CopyInResponse", ord("H"): "CopyOutResponse"}
# Messages with two strings, which begin at this byte: channel and payload, name and value.
_PAIRS: Final = {ord("A"): ("NotificationResponse", 4), ord("S"): ("ParameterStatus", 0)}

SYNC: Final = b"S\0\0\0\4"
COPY_DONE: Final = b"c\0\0\0\4"
TERMINATE: Final = b"X\0\0\0\4"


def _message(kind: bytes, payload: bytes) -> bytes:
    return kind + (len(payload) + 4).to_bytes(4, "big") + payload


def _text(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape") + b"\0"


def startup(parameters: Mapping[str, str]) -> bytes:
    """Return the startup message. Parameters are user, database, and any settings of the server."""
    payload = PROTOCOL_VERSION.to_bytes(4, "big")
    payload += b"".join(_text(part) for pair in parameters.items() for part in pair) + b"\0"
    return (len(payload) + 4).to_bytes(4, "big") + payload


def query(sql: str) -> bytes:
    """Return a Query message."""
    return _message(b"Q", _text(sql))


class ValueFormat(IntEnum):
    """Formats of values."""

    TEXT = 0
    BINARY = 1


def parse(name: str, sql: str, types: Sequence[int] = ()) -> bytes:
    """Return a Parse message for a prepared statement; "" is the unnamed statement. `types` are OIDs of parameters."""
    oids = b"".join(oid.to_bytes(4, "big") for oid in types)
    return _message(b"P", _text(name) + _text(sql) + len(types).to_bytes(2, "big") + oids)


def bind(statement: str, params: Iterable[str | None] = (), results: ValueFormat = ValueFormat.TEXT) -> bytes:
    """Return a Bind message for the unnamed portal, with parameters in text format."""
    values = [None if value is None else value.encode("utf-8", "surrogateescape") for value in params]
    encoded = b"".join(
        b"\xff\xff\xff\xff" if value is None else len(value).to_bytes(4, "big") + value for value in values
    )
    payload = b"\0" + _text(statement) + b"\0\0" + len(values).to_bytes(2, "big") + encoded
    return _message(b"B", payload + _formats(results))


def bind_row(row: bytes, format_: ValueFormat) -> bytes:
    """Return a Bind message of the unnamed statement for the unnamed portal, with a DataRow's values as parameters.

    A DataRow encodes its values as Bind does. Results are in text format.
    """
    return _message(b"B", b"\0\0" + _formats(format_) + row + _formats(ValueFormat.TEXT))


def _formats(format_: ValueFormat) -> bytes:
    """Return the format of all parameters or results."""
    return b"\0\1" + format_.to_bytes(2, "big")


def execute(max_rows: int = 0) -> bytes:
    """Return an Execute message for the unnamed portal; 0 rows: no limit."""
    return _message(b"E", b"\0" + max_rows.to_bytes(4, "big"))


DESCRIBE_PORTAL: Final = _message(b"D", b"P\0")
CLOSE_PORTAL: Final = _message(b"C", b"P\0")


def close_statement(name: str) -> bytes:
    """Return a Close message for a prepared statement. The server ignores an unknown name."""
    return _message(b"C", b"S" + _text(name))


def copy_data(data: bytes) -> bytes:
    """Return the data as CopyData messages."""
    starts = range(0, len(data), COPY_CHUNK_BYTES)
    return b"".join(_message(b"d", data[start : start + COPY_CHUNK_BYTES]) for start in starts)


def parse_fields(payload: bytes) -> dict[str, str]:
    """Return the fields of an ErrorResponse or NoticeResponse by their one-letter codes."""
    text = payload.decode("utf-8", "replace")
    return {part[0]: part[1:] for part in text.split("\0") if part}


def error_response(severity: str, sqlstate: str, text: str) -> bytes:
    """Return the payload of an ErrorResponse."""
    return _text(f"S{severity}") + _text(f"V{severity}") + _text(f"C{sqlstate}") + _text(f"M{text}") + b"\0"


def malformation(kind: int, payload: bytes) -> str:
    """Return why a message of the server, which is no row, cannot be read; "" if it can."""
    if kind == READY and payload not in (b"I", b"T", b"E"):
        return f"an unknown status, {payload!r}"
    if kind == BACKEND_KEY and len(payload) < _LEAST_KEY:
        return f"{len(payload)} bytes"
    if kind == COMMAND_COMPLETE and not payload.endswith(b"\0"):
        return "a text without an end"
    if kind in _COPY_RESPONSES and len(payload) != _copy_response_bytes(payload):
        return "incomplete formats of columns"
    if kind == ROW_DESCRIPTION:
        try:
            list(columns_of(payload))
        except (ValueError, struct.error):
            return "incomplete columns"
    return ""


def message_of(payload: bytes) -> Message:
    """Return an error or notice with detail, hint, context and fields.

    The context line "parallel worker" is removed, because timing decides which process raises an error. The schema of
    temporary objects loses its number, because that is the session's.
    """
    fields = parse_fields(payload)
    context = [line for line in fields.get("W", "").split("\n") if line and line != "parallel worker"]
    parts = [fields.get("M", "")]
    parts += [f"{label}: {fields[code]}" for code, label in (("D", "DETAIL"), ("H", "HINT")) if code in fields]
    parts += [f"CONTEXT: {line}" for line in context]
    severity = fields.get("V", fields.get("S", ""))
    named = ((name, _unnumbered(fields[code])) for code, name in _NAMED_FIELDS.items() if code in fields)
    return Message(severity, fields.get("C", ""), _unnumbered("\n".join(parts)), fields.get("R", ""), tuple(named))


def _unnumbered(text: str) -> str:
    return _TEMPORARY_SCHEMA.sub(r"\1", text)


def _copy_response_bytes(payload: bytes) -> int:
    """Return the size of the response to COPY: the format, the number of columns, and their formats."""
    return 3 + 2 * int.from_bytes(payload[1:3], "big")


def protocol_text(kind: int, payload: bytes) -> str:
    """Return COPY's formats, a notification or a reported setting as text; "" for other types of messages.

    A notification loses the process number of its sender.
    """
    if name := _COPY_RESPONSES.get(kind):
        formats = (int.from_bytes(payload[at : at + 2], "big") for at in range(3, len(payload), 2))
        return f"{name}: format {payload[0]}, of columns {', '.join(map(str, formats)) or 'none'}"
    if kind not in _PAIRS:
        return ""
    name, start = _PAIRS[kind]
    first, second, *_ = [*payload[start:].decode("utf-8", "replace").split("\0"), "", ""]
    return f"{name}: {first} = {second}"


def columns_of(payload: bytes) -> Iterator[ResultColumn]:
    """Yield the columns of a RowDescription. Types are OIDs."""
    position = 2
    for _ in range(int.from_bytes(payload[:2], "big")):
        end = payload.index(b"\0", position)
        _, attribute, oid, length, modifier, binary = _FIELD.unpack_from(payload, end + 1)
        name = payload[position:end].decode("utf-8", "replace")
        yield ResultColumn(name, str(oid), length, modifier, attribute, bool(binary))
        position = end + 1 + _FIELD.size


def values_of(row: bytes) -> list[str | None]:
    """Return the decoded values of a DataRow. Only for pgduel's own small queries."""
    values: list[str | None] = []
    position = 2
    for _ in range(int.from_bytes(row[:2], "big")):
        length = int.from_bytes(row[position : position + 4], "big", signed=True)
        position += 4
        values.append(None if length < 0 else row[position : position + length].decode("utf-8", "replace"))
        position += max(length, 0)
    return values
