"""Tests of the relay: a TCP port that forwards one role's sessions to a Unix socket."""

import socket
import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.execution.messages import startup
from fuzz.servers import relay as module
from fuzz.servers.relay import forward

HELLO = startup({"user": "duelist", "database": "d", "options": ""})
SSL_REQUEST = struct.pack(">II", 8, 80877103)
GSSENC_REQUEST = struct.pack(">II", 8, 80877104)
CANCEL_REQUEST = struct.pack(">IIII", 16, 80877102, 4711, 42)


class Upper(socketserver.StreamRequestHandler):
    """A handler that removes the startup packet, then replies to each line in upper case."""

    server: "Server"

    def handle(self) -> None:
        self.server.reached.append(self.rfile.read(len(HELLO)))
        for line in self.rfile:
            self.wfile.write(line.upper())


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), Upper)
        self.path = path
        self.reached: list[bytes] = []


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "s") as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield server
        server.shutdown()


@contextmanager
def client(port: int, hello: bytes = HELLO) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(hello)
        yield connection


def everything(connection: socket.socket) -> bytes:
    """Return all bytes until the other side closes or resets the connection."""
    received = b""
    with suppress(ConnectionResetError):
        while more := connection.recv(1 << 16):
            received += more
    return received


def test_bytes_go_both_ways_in_several_connections(server: Server) -> None:
    with forward(server.path, "duelist") as port:
        for _ in range(3):
            with client(port) as connection, connection.makefile("rw") as file:
                file.write("one\ntwo\n")
                file.flush()
                assert [file.readline(), file.readline()] == ["ONE\n", "TWO\n"]
    assert server.reached == [HELLO] * 3


def test_a_startup_packet_may_arrive_in_pieces_and_together_with_data(server: Server) -> None:
    with forward(server.path, "duelist") as port, client(port, HELLO[:3]) as connection:
        connection.sendall(HELLO[3:11])
        connection.sendall(HELLO[11:] + b"one\n")
        assert connection.recv(10) == b"ONE\n"


@pytest.mark.parametrize("requests", [(SSL_REQUEST,), (GSSENC_REQUEST,), (GSSENC_REQUEST, SSL_REQUEST)])
def test_encryption_is_refused_then_the_session_begins(requests: tuple[bytes, ...], server: Server) -> None:
    with forward(server.path, "duelist") as port, client(port, b"") as connection:
        for request in requests:
            connection.sendall(request)
            assert connection.recv(10) == b"N"
        connection.sendall(HELLO + b"one\n")
        assert connection.recv(10) == b"ONE\n"


def raw(body: bytes, code: int = 196608) -> bytes:
    return struct.pack(">II", 8 + len(body), code) + body


REFUSED = {
    "another role": startup({"user": "postgres"}),
    "a role with the same prefix": startup({"user": "duelists"}),
    "no role": startup({"database": "duelist"}),
    "nothing": startup({}),
    "an empty packet": raw(b""),
    "no terminator": raw(b"user\0duelist\0"),
    "bytes after the terminator": raw(b"user\0duelist\0\0\0"),
    "parameters after the terminator": raw(b"user\0duelist\0\0user\0postgres\0\0"),
    "a name without a value": raw(b"user\0duelist\0x\0\0"),
    "two roles": raw(b"user\0postgres\0user\0duelist\0\0"),
    "two roles, ours first": raw(b"user\0duelist\0user\0postgres\0\0"),
    "replication": startup({"user": "duelist", "replication": "true"}),
    "replication of a database": startup({"user": "duelist", "replication": "database"}),
    "replication, denied": startup({"user": "duelist", "replication": "off"}),
    "protocol 2": raw(b"duelist".ljust(288, b"\0"), 131072),
    "a protocol of the future": raw(b"user\0duelist\0\0", 4 << 16),
    "a request to cancel": CANCEL_REQUEST,
    "a long request for encryption": raw(b"\0", 80877103),
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS without a request": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "too long": struct.pack(">II", 10001, 196608),
    "too short": struct.pack(">II", 7, 196608),
    "encryption again and again": SSL_REQUEST * 4,
}


@pytest.mark.parametrize("hello", REFUSED.values(), ids=REFUSED)
def test_others_are_refused_in_one_line_and_do_not_reach_the_server(hello: bytes, server: Server) -> None:
    with forward(server.path, "duelist") as port:
        with client(port, hello) as connection:
            received = everything(connection).lstrip(b"N")
        with client(port, HELLO + b"one\n") as connection:  # after this reply, the server has read everything
            assert connection.recv(10) == b"ONE\n"
    assert server.reached == [HELLO]
    assert received[:1] == b"E"
    assert struct.unpack_from(">I", received, 1)[0] == len(received) - 1
    fields = received[5:].split(b"\0")
    assert fields[:3] == [b"SFATAL", b"VFATAL", b"C28000"]
    assert fields[3].startswith(b"M")
    assert fields[4:] == [b"", b""]
    assert b"\n" not in received


names = st.sampled_from([b"user", b"duelist", b"postgres", b"replication", b"database", b"", b"\0"])
bodies = st.binary(max_size=200) | st.lists(names, max_size=8).map(b"\0".join)


@given(bodies, st.sampled_from([196608, 196610, 80877102, 0]))
def test_of_arbitrary_packets_only_those_of_the_role_pass(body: bytes, code: int) -> None:
    """The result is compared with the server's own algorithm (ProcessStartupPacket)."""
    try:
        module.check_startup(raw(body, code), "duelist")
    except module._RefusedError:
        return
    assert code >> 16 == 3
    read = as_the_server_reads_it(body)
    assert read[b"user"] == b"duelist"
    assert b"replication" not in read


def as_the_server_reads_it(body: bytes) -> dict[bytes, bytes]:
    read, offset = {}, 0

    def text(start: int) -> bytes:
        return body[start : body.index(b"\0", start)]

    while name := text(offset):
        value = text(offset + len(name) + 1)
        read[name] = value
        offset += len(name) + len(value) + 2
    assert offset == len(body) - 1
    return read


def test_the_client_gets_an_error_if_no_server_listens(tmp_path: Path) -> None:
    with forward(tmp_path / "absent", "duelist") as port, client(port) as connection:
        assert b"no server listens" in everything(connection)


def test_a_silent_client_is_disconnected(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STARTUP_SECONDS", 0.2)
    with forward(server.path, "duelist") as port, client(port, HELLO[:5]) as connection:
        assert everything(connection) == b""
    assert server.reached == []


def test_clients_beyond_the_servers_limit_are_disconnected(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CLIENTS", 2)
    with forward(server.path, "duelist") as port:
        with client(port, HELLO + b"one\n") as one, client(port, HELLO + b"two\n") as two:
            assert [one.recv(10), two.recv(10)] == [b"ONE\n", b"TWO\n"]
            with closing(socket.create_connection(("127.0.0.1", port), timeout=10)) as third:
                assert everything(third) == b""
        for _ in range(100):  # until the relay has closed the first two
            with suppress(ConnectionError), client(port, HELLO + b"one\n") as connection:
                if connection.recv(10) == b"ONE\n":
                    return
    pytest.fail("no client is taken after others went away")


def test_each_relay_has_a_port_of_its_own(server: Server) -> None:
    with forward(server.path, "duelist") as one, forward(server.path, "duelist") as other:
        assert one != other
