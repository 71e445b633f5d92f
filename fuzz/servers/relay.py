"""Relay: a TCP port of 127.0.0.1 that leads to a server's Unix socket, for clients that know no other way (JDBC).

So servers keep listening on Unix sockets only, arms keep equal settings, and there is no port that could be in use.
"""

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from fuzz.errors import ServerError

_CHUNK: Final = 1 << 16


class _Handler(socketserver.BaseRequestHandler):
    """One connection, until either side hangs up."""

    server: "_Relay"

    def handle(self) -> None:
        """Carry bytes both ways."""
        with socket.socket(socket.AF_UNIX) as inside:
            try:
                inside.connect(self.server.path)
            except OSError:
                return  # nobody listens there: the client sees its connection closed
            self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = threading.Thread(target=_pump, args=(inside, self.request), daemon=True)
            back.start()
            _pump(self.request, inside)
            back.join()


def _pump(source: Any, sink: Any) -> None:
    """Carry bytes one way, and then the news that there are no more."""
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            sink.sendall(data)
    for end in (sink, source):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


class _Relay(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, path: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)  # the kernel picks a port that is free
        self.path = path


@contextmanager
def relay(path: Path) -> Iterator[int]:
    """Open a port that leads to a Unix socket, and return its number. Raises ServerError."""
    try:
        server = _Relay(str(path))
    except OSError as error:
        raise ServerError(
            f"no port of 127.0.0.1 can be opened ({error.strerror}): allow it to have JDBC connect"
        ) from error
    with server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
