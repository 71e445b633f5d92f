"""PostgreSQL's frontend/backend protocol, version 3, as far as pgduel needs it: over a unix socket, by trust.

libpq cannot serve here: its pipeline mode refuses COPY, and its simple mode waits for each answer. A `Wire` sends
the messages of many steps at once and reads replies meanwhile; it never blocks, so neither side can deadlock, however
large data or results are. COPY ... FROM STDIN is pipelined too, in the simple protocol: data follows the statement
without waiting for CopyInResponse, and where the server did not enter copy-in mode, or left it by an error, its main
loop ignores CopyData and CopyDone (src/backend/tcop/postgres.c).

Rows are kept as the payload bytes that arrived; nothing is decoded that nobody asked for. On one core, 20,000 small
SELECTs cost 0.17 s of CPU here, 300,000 rows 0.14 s.
"""

import errno
import socket
import struct
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fuzz.errors import ServerError
from oracles.observation import Message

PROTOCOL_VERSION: Final = 196608
RECEIVE_BYTES: Final = 1 << 18  # a unix socket holds about 200 kB, so one call empties it
COPY_CHUNK_BYTES: Final = 1 << 16

_HEAD = struct.Struct(">BI")
_FIELD = struct.Struct(">IhIhih")  # table, attribute, type, its length, modifier, format: follows the column's name

AUTHENTICATION, BACKEND_KEY, READY = ord("R"), ord("K"), ord("Z")
ROW_KINDS: Final = frozenset(b"Dd")  # DataRow, CopyData
COMMAND_COMPLETE = ord("C")
ERROR_RESPONSE, NOTICE_RESPONSE, ROW_DESCRIPTION = ord("E"), ord("N"), ord("T")

SYNC: Final = b"S\0\0\0\4"
COPY_DONE: Final = b"c\0\0\0\4"
TERMINATE: Final = b"X\0\0\0\4"


@dataclass(slots=True)
class Reply:
    """All that came up to the ReadyForQuery that ends each Query and each Sync; `status` is I, T or E, or "" (cut)."""

    rows: list[bytes] = field(default_factory=list)  # payloads of DataRow and CopyData
    others: list[tuple[int, bytes]] = field(default_factory=list)  # all other messages: type, payload
    status: str = ""


def _message(kind: bytes, payload: bytes) -> bytes:
    return kind + (len(payload) + 4).to_bytes(4, "big") + payload


def _text(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape") + b"\0"


def startup(parameters: Mapping[str, str]) -> bytes:
    """Return the first message of a connection; parameters are user, database and any setting of the server."""
    payload = PROTOCOL_VERSION.to_bytes(4, "big")
    payload += b"".join(_text(part) for pair in parameters.items() for part in pair) + b"\0"
    return (len(payload) + 4).to_bytes(4, "big") + payload


def query(sql: str) -> bytes:
    """Return a simple query."""
    return _message(b"Q", _text(sql))


def parse(name: str, sql: str) -> bytes:
    """Return Parse into a prepared statement; the empty name is the unnamed one."""
    return _message(b"P", _text(name) + _text(sql) + b"\0\0")


def bind(statement: str, params: Iterable[str | None] = ()) -> bytes:
    """Return Bind of the statement to the unnamed portal; parameters and results in text form."""
    values = [None if value is None else value.encode("utf-8", "surrogateescape") for value in params]
    encoded = b"".join(
        b"\xff\xff\xff\xff" if value is None else len(value).to_bytes(4, "big") + value for value in values
    )
    return _message(b"B", b"\0" + _text(statement) + b"\0\0" + len(values).to_bytes(2, "big") + encoded + b"\0\0")


def execute(max_rows: int = 0) -> bytes:
    """Return Execute of the unnamed portal, to its end or until `max_rows` more rows have come."""
    return _message(b"E", b"\0" + max_rows.to_bytes(4, "big"))


DESCRIBE_PORTAL: Final = _message(b"D", b"P\0")
CLOSE_PORTAL: Final = _message(b"C", b"P\0")


def close_statement(name: str) -> bytes:
    """Return Close of a prepared statement; no error where there is none."""
    return _message(b"C", b"S" + _text(name))


def copy_data(data: bytes) -> bytes:
    """Return the data as CopyData messages."""
    starts = range(0, len(data), COPY_CHUNK_BYTES)
    return b"".join(_message(b"d", data[start : start + COPY_CHUNK_BYTES]) for start in starts)


def parse_fields(payload: bytes) -> dict[str, str]:
    """Return the fields of an ErrorResponse or NoticeResponse by their one-letter code."""
    text = payload.decode("utf-8", "replace")
    return {part[0]: part[1:] for part in text.split("\0") if part}


def message_of(payload: bytes) -> Message:
    """Return an error or notice with detail, hint and context, without the note that a parallel worker met it.

    Which process of a parallel query meets an error is a matter of timing.
    """
    fields = parse_fields(payload)
    context = [line for line in fields.get("W", "").split("\n") if line and line != "parallel worker"]
    parts = [fields.get("M", "")]
    parts += [f"{label}: {fields[code]}" for code, label in (("D", "DETAIL"), ("H", "HINT")) if code in fields]
    parts += [f"CONTEXT: {line}" for line in context]
    return Message(fields.get("V", fields.get("S", "")), fields.get("C", ""), "\n".join(parts))


def columns_of(payload: bytes) -> Iterator[tuple[str, int]]:
    """Yield name and type OID of each column of a RowDescription."""
    position = 2
    for _ in range(int.from_bytes(payload[:2], "big")):
        end = payload.index(b"\0", position)
        yield payload[position:end].decode("utf-8", "replace"), _FIELD.unpack_from(payload, end + 1)[2]
        position = end + 1 + _FIELD.size


def values_of(row: bytes) -> list[str | None]:
    """Return the values of a DataRow; for pgduel's own small queries only."""
    values: list[str | None] = []
    position = 2
    for _ in range(int.from_bytes(row[:2], "big")):
        length = int.from_bytes(row[position : position + 4], "big", signed=True)
        position += 4
        values.append(None if length < 0 else row[position : position + length].decode("utf-8", "replace"))
        position += max(length, 0)
    return values


class Wire:
    """One connection. Work is queued by `send`; `pump_out` and `pump_in` move bytes when the socket is ready.

    `replies` grows by one Reply for each Query or Sync answered, the startup's first. When the server closes the
    connection, `lost` is set and `partial` holds what came of the reply that was cut.
    """

    def __init__(self, socket_directory: Path, port: int, parameters: Mapping[str, str]) -> None:
        self.replies: list[Reply] = []
        self.partial = Reply()
        self.pid = 0
        self.lost = False
        self.expected = 1  # the startup's own ReadyForQuery
        self._outgoing: deque[memoryview] = deque((memoryview(startup(parameters)),))
        self._carry = b""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(str(socket_directory / f".s.PGSQL.{port}"))
        except OSError as error:
            self._socket.close()
            raise ServerError(
                f"no server answers at {socket_directory}, port {port} ({error.strerror}); is it running?"
            ) from error
        self._socket.settimeout(0)  # never block

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._socket.fileno()

    @property
    def wants_out(self) -> bool:
        """Tell whether bytes wait to be sent."""
        return bool(self._outgoing)

    @property
    def settled(self) -> bool:
        """Tell whether all that was sent is answered, or never will be."""
        return self.lost or len(self.replies) >= self.expected

    def take_replies(self) -> list[Reply]:
        """Return the replies so far, and count anew."""
        taken, self.replies = self.replies, []
        self.expected = 0
        return taken

    def send(self, frames: bytes, expected: int) -> None:
        """Queue messages that will be answered by `expected` ReadyForQuery messages."""
        self._outgoing.append(memoryview(frames))
        self.expected += expected

    def pump_out(self) -> None:
        """Send what the socket takes."""
        try:
            while self._outgoing:
                sent = self._socket.send(self._outgoing[0])
                if sent == len(self._outgoing[0]):
                    self._outgoing.popleft()
                else:
                    self._outgoing[0] = self._outgoing[0][sent:]
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.ECONNRESET):
                raise
            self._outgoing.clear()  # what the server still said is to be read: `pump_in` meets the end

    def pump_in(self) -> None:
        """Read what the socket has, once."""
        try:
            chunk = self._socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except ConnectionResetError:
            chunk = b""
        if chunk:
            self._split(self._carry + chunk if self._carry else chunk)
        else:
            self.lost = True
            self._outgoing.clear()

    def _split(self, data: bytes) -> None:
        """Take messages off the data. Most are rows: they come first."""
        position, body, size = 0, 5, len(data)
        row_kinds = ROW_KINDS
        reply = self.partial
        add_row, unpack = reply.rows.append, _HEAD.unpack_from
        while body <= size:
            kind, length = unpack(data, position)
            end = position + 1 + length
            if end > size:
                break
            if kind in row_kinds:
                add_row(data[body:end])
            elif kind == READY:
                reply.status = chr(data[body])
                self.replies.append(reply)
                reply = self.partial = Reply()
                add_row = reply.rows.append
            else:
                if kind == BACKEND_KEY:
                    self.pid = int.from_bytes(data[body : body + 4], "big")
                reply.others.append((kind, data[body:end]))
            position = end
            body = end + 5
        self._carry = data[position:]

    def close(self) -> None:
        """Close the socket at once; the backend notices and exits."""
        self._outgoing.clear()
        self.lost = True
        self._socket.close()
