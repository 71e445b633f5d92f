"""PostgreSQL's frontend/backend protocol, version 3, as far as pgduel needs it: over a unix socket, by trust.

libpq cannot serve here: its pipeline mode refuses COPY, and its simple mode waits for each answer. A `Wire` sends
the messages of many steps at once and reads replies meanwhile; it never blocks, so neither side can deadlock, however
large data or results are. COPY ... FROM STDIN is pipelined too, in the simple protocol: data follows the statement
without waiting for CopyInResponse, and where the server did not enter copy-in mode, or left it by an error, its main
loop ignores CopyData and CopyDone (src/backend/tcop/postgres.c).

Rows are kept as the payload bytes that arrived; nothing is decoded that nobody asked for. One core takes 170,000 small
SELECTs or 4 million rows a second.
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
from fuzz.execution.messages import BACKEND_KEY, READY, ROW_KINDS, startup

RECEIVE_BYTES: Final = 1 << 18  # a unix socket holds about 200 kB, so one call empties it

_HEAD = struct.Struct(">BI")


@dataclass(slots=True)
class Reply:
    """All that came up to the ReadyForQuery that ends each Query and each Sync; `status` is I, T or E, or "" (cut)."""

    rows: list[bytes] = field(default_factory=list)  # payloads of DataRow and CopyData
    others: list[tuple[int, bytes]] = field(default_factory=list)  # all other messages: type, payload
    status: str = ""


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
