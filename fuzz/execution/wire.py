"""Connections by PostgreSQL's frontend/backend protocol, version 3, over a Unix socket.

libpq is unsuitable: its pipeline mode refuses COPY, and its simple mode waits for each answer. A `Wire` sends the
messages of many steps at once and reads replies meanwhile. It never blocks, so large data or results cause no deadlock.

COPY FROM STDIN is pipelined, too, in the simple protocol: data follows the statement without waiting for
CopyInResponse. If the server is not in copy-in mode, or left it by an error, its main loop ignores CopyData and
CopyDone (src/backend/tcop/postgres.c).

Rows stay payload bytes and are decoded only on demand. One core processes 170,000 small SELECTs or 4 million rows a
second.
"""

import errno
import socket
import struct
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fuzz.errors import ServerError
from fuzz.execution.messages import BACKEND_KEY, ERROR_RESPONSE, READY, ROW_KINDS, error_response, malformation, startup

# A Unix socket holds about 200 kB, so one call empties it.
RECEIVE_BYTES: Final = 1 << 18
# Of the rows of a reply. One of PostgreSQL's own tests has an EXPLAIN whose query returns gigabytes.
RESULT_BYTES: Final = 1 << 26

_HEAD = struct.Struct(">BI")
_LENGTHS: Final = range(4, 1 << 30)  # of a message, including the length itself; the server's limit is 1 GB
_PROTOCOL_VIOLATION: Final = "08P01"


@dataclass(slots=True)
class Reply:
    """All messages up to a ReadyForQuery, which ends each Query and each Sync.

    `status` is I, T or E, or "" for an incomplete reply.
    """

    rows: list[bytes] = field(default_factory=list)  # payloads of DataRow and CopyData
    others: list[tuple[int, bytes]] = field(default_factory=list)  # type and payload of all other messages
    status: str = ""
    too_large: bool = False  # whether the rows exceeded RESULT_BYTES; then they are dropped
    spans: bool = field(default=False, compare=False)  # whether it took several reads from the socket
    _size: int = field(default=0, compare=False)
    _measured: int = field(default=0, compare=False)  # rows

    def measure(self) -> None:
        """Drop the rows if they exceed RESULT_BYTES."""
        self._size += sum(map(len, self.rows[self._measured :]))
        if self._size > RESULT_BYTES:
            self.rows.clear()
            self.too_large = True
        self._measured = len(self.rows)


class Wire:
    """One connection. `send` queues messages; `pump_out` and `pump_in` transfer bytes when the socket is ready.

    `replies` has the reply to the startup first, then one Reply per answered Query or Sync. When the server closes the
    connection, `lost` is set, and `partial` holds the incomplete reply. A malformed message counts as the connection's
    end; `partial` then has a fatal error about it, as libpq creates errors of its own.
    """

    def __init__(self, socket_directory: Path, port: int, parameters: Mapping[str, str]) -> None:
        self.replies: list[Reply] = []
        self.partial = Reply()
        self.pid = 0
        self.lost = False
        self.expected = 1  # the ReadyForQuery of the startup
        self._outgoing: deque[memoryview] = deque((memoryview(startup(parameters)),))
        self._carry: list[bytes] = []  # the start of an incomplete message
        self._missing = 0  # bytes of it, as far as known
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
        """Return whether there are bytes to send."""
        return bool(self._outgoing)

    @property
    def settled(self) -> bool:
        """Return whether all messages are answered, or the connection is lost."""
        return self.lost or len(self.replies) >= self.expected

    def take_replies(self) -> list[Reply]:
        """Return the replies so far, and reset the number of expected ones."""
        taken, self.replies = self.replies, []
        self.expected = 0
        return taken

    def send(self, frames: bytes, expected: int) -> None:
        """Queue messages whose answer contains `expected` ReadyForQuery messages."""
        self._outgoing.append(memoryview(frames))
        self.expected += expected

    def pump_out(self) -> None:
        """Send as many bytes as the socket accepts."""
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
            self._outgoing.clear()  # `pump_in` reads the server's last messages, and then the end of the connection

    def pump_in(self) -> None:
        """Read once from the socket."""
        try:
            chunk = self._socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except ConnectionResetError:
            chunk = b""
        if not chunk:
            self.lost = True
            self._outgoing.clear()
            return
        self._carry.append(chunk)
        self._missing -= len(chunk)
        if self._missing <= 0:  # joined earlier, a large row would be copied with each of its thousands of chunks
            self._split(b"".join(self._carry))

    def _split(self, data: bytes) -> None:
        """Parse messages. Rows are tested first, because most messages are rows."""
        position, body, size = 0, 5, len(data)
        row_kinds = ROW_KINDS
        reply = self.partial
        add_row, unpack = reply.rows.append, _HEAD.unpack_from
        while body <= size:
            kind, length = unpack(data, position)
            if length not in _LENGTHS:
                return self._break_off(kind, f"a length of {length}")
            end = position + 1 + length
            if end > size:
                break
            if kind in row_kinds:
                add_row(data[body:end])
            elif wrong := malformation(kind, data[body:end]):
                return self._break_off(kind, wrong)
            elif kind == READY:
                if reply.spans:
                    reply.measure()
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
        self._missing = (body if body > size else end) - size
        self._carry = [data[position:]] if position < size else []
        reply.measure()
        reply.spans = True

    def _break_off(self, kind: int, wrong: str) -> None:
        """End the connection, because the position of the next message is unknown."""
        text = f"the server sent a message of type {chr(kind)!r} with {wrong}"
        self.partial.others.append((ERROR_RESPONSE, error_response("FATAL", _PROTOCOL_VIOLATION, text)))
        self.close()

    def close(self) -> None:
        """Close the socket immediately; the backend detects that and exits."""
        self._outgoing.clear()
        self.lost = True
        self._socket.close()
