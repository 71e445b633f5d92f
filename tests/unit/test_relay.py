"""A TCP port that leads to a Unix socket."""

import socket
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz.servers.relay import relay


class Upper(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        for line in self.rfile:
            self.wfile.write(line.upper())


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    with Server(str(tmp_path / "s"), Upper) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield tmp_path / "s"
        server.shutdown()


def test_bytes_go_both_ways_in_several_connections(path: Path) -> None:
    with relay(path) as port:
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as client, client.makefile("rw") as file:
                file.write("one\ntwo\n")
                file.flush()
                assert [file.readline(), file.readline()] == ["ONE\n", "TWO\n"]


def test_where_nobody_listens_the_connection_is_closed(tmp_path: Path) -> None:
    with relay(tmp_path / "nobody") as port, socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        assert client.recv(1) == b""


def test_each_relay_has_a_port_of_its_own(path: Path) -> None:
    with relay(path) as one, relay(path) as other:
        assert one != other
