"""Relay: a TCP port of 127.0.0.1 that leads to a server's Unix socket, for clients without Unix sockets (JDBC).

So servers listen on Unix sockets only, arms keep equal settings, and ports cannot conflict. Any local user can open the
port. Two things protect the server: the relay forwards only sessions of a role that it creates, and pg_hba.conf
requires that role's random password (settings.HBA).
"""

import secrets
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

from fuzz.errors import ServerError
from fuzz.servers.settings import RELAY_ROLES

_CHUNK: Final = 1 << 16
_CLIENTS: Final = (
    40  # concurrent clients, as many as a server allows, so that idle connections cannot use up all descriptors
)
_STARTUP_SECONDS: Final = 20.0  # limit for a client's startup packet

# Codes in the place of the protocol's version (src/include/libpq/pqcomm.h).
_SSL_REQUEST: Final = 80877103
_GSSENC_REQUEST: Final = 80877104
_MAJOR_VERSION: Final = 3
_LONGEST_STARTUP: Final = 10000

_HEAD: Final = struct.Struct(">II")  # length including itself, code


@dataclass(frozen=True, slots=True)
class Login:
    """A client's credentials for a relay."""

    port: int
    user: str
    password: str = field(repr=False)


class _RefusedError(Exception):
    """A client that gets no connection, with the reason."""


@contextmanager
def relay(socket_dir: Path, port: int) -> Iterator[Login]:
    """Open a relay to a server. Its role is a superuser, and is dropped at the end unless it owns something.

    Raises ServerError, psycopg.OperationalError.
    """
    # Hexadecimal, because programs could read a leading "-" as an option.
    user, password = f"{RELAY_ROLES}_{secrets.token_hex(8)}", secrets.token_hex(32)
    with _role(socket_dir, port, user, password), forward(socket_dir / f".s.PGSQL.{port}", user) as opened:
        yield Login(opened, user, password)


@contextmanager
def _role(socket_dir: Path, port: int, user: str, password: str) -> Iterator[None]:
    """Create a role, and drop it at the end unless the server has just crashed."""
    name, group = sql.Identifier(user), sql.Identifier(RELAY_ROLES)
    with closing(_administrator(socket_dir, port)) as connection:
        # The verifier is computed here, because the password itself could reach the server's log.
        verifier = connection.pgconn.encrypt_password(password.encode(), user.encode(), b"scram-sha-256").decode()
        create = sql.SQL("CREATE ROLE {} LOGIN SUPERUSER IN ROLE {} PASSWORD {}")
        connection.execute(create.format(name, group, sql.Literal(verifier)))
    try:
        yield
    finally:
        gone = suppress(psycopg.OperationalError, psycopg.errors.DependentObjectsStillExist)
        with gone, closing(_administrator(socket_dir, port)) as connection:
            connection.execute(sql.SQL("ALTER ROLE {} NOLOGIN").format(name))
            connection.execute(sql.SQL("DROP ROLE {}").format(name))


def _administrator(socket_dir: Path, port: int) -> psycopg.Connection[Any]:
    return psycopg.connect(host=str(socket_dir), port=port, user="postgres", dbname="postgres", autocommit=True)


@contextmanager
def forward(path: Path, user: str) -> Iterator[int]:
    """Open a port that forwards one user's sessions to a Unix socket; return its number. Raises ServerError."""
    try:
        server = _Relay(path, user)
    except OSError as error:
        raise ServerError(f"cannot open a port of 127.0.0.1 ({error.strerror}); JDBC needs one, so allow it") from error
    with server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()


class _Handler(socketserver.BaseRequestHandler):
    """One connection, until one side closes it."""

    server: "_Relay"

    def handle(self) -> None:
        """Read the startup packet, then forward bytes in both directions."""
        with suppress(OSError):  # the client closed the connection
            try:
                self._serve()
            except _RefusedError as refusal:
                self.request.sendall(_error(str(refusal)))

    def _serve(self) -> None:
        self.request.settimeout(_STARTUP_SECONDS)
        packet = _startup_packet(self.request)
        check_startup(packet, self.server.user)
        self.request.settimeout(None)
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with socket.socket(socket.AF_UNIX) as inside:
            try:
                inside.connect(str(self.server.path))
            except OSError as error:
                raise _RefusedError("no server listens behind the relay") from error
            inside.sendall(packet)
            back = threading.Thread(target=_pump, args=(inside, self.request), daemon=True)
            back.start()
            _pump(self.request, inside)
            back.join()


def _startup_packet(client: Any) -> bytes:
    """Return the client's StartupMessage, after refusing encryption."""
    for _ in range(3):  # each kind of encryption may be requested once
        head = _received(client, _HEAD.size)
        length, code = _HEAD.unpack(head)
        if not _HEAD.size <= length <= _LONGEST_STARTUP:
            raise _RefusedError("the first packet is not of PostgreSQL's protocol")
        if length > _HEAD.size or code not in (_SSL_REQUEST, _GSSENC_REQUEST):
            return head + _received(client, length - _HEAD.size)
        client.sendall(b"N")
    raise _RefusedError("the client requests encryption again and again")


def _received(client: Any, size: int) -> bytes:
    """Return exactly `size` bytes."""
    data = b""
    while len(data) < size:
        if not (more := client.recv(size - len(data))):
            raise ConnectionResetError
        data += more
    return data


def check_startup(packet: bytes, user: str) -> None:
    """Check that a packet starts a session of the user, and has no other interpretation. Raises _RefusedError.

    The server uses the last of two equal parameters, so duplicates are refused. Replication and cancel requests are
    refused: no client of a relay needs them, and with a guessed key they could disturb a session without a password.
    """
    code = _HEAD.unpack_from(packet)[1]
    if code >> 16 != _MAJOR_VERSION:
        raise _RefusedError("the relay forwards sessions of protocol 3 only")
    body = packet[_HEAD.size :]
    parts = body.removesuffix(b"\0").removesuffix(b"\0").split(b"\0")
    names = parts[::2]
    if not body.endswith(b"\0\0") or len(parts) % 2 or b"" in names or len(set(names)) < len(names):
        raise _RefusedError("the startup packet is malformed")
    parameters = dict(zip(names, parts[1::2], strict=True))
    if b"replication" in parameters:
        raise _RefusedError("the relay does not forward replication")
    if parameters.get(b"user") != user.encode():
        raise _RefusedError("the relay forwards sessions of its own role only")


def _error(why: str) -> bytes:
    """Return an ErrorResponse: invalid_authorization_specification."""
    fields = b"".join(each.encode() + b"\0" for each in ("SFATAL", "VFATAL", "C28000", f"M{why}")) + b"\0"
    return b"E" + struct.pack(">I", len(fields) + 4) + fields


def _pump(source: Any, sink: Any) -> None:
    """Forward bytes in one direction, then the end of the stream."""
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            sink.sendall(data)
    for end in (sink, source):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


class _Relay(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, path: Path, user: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)  # the kernel selects a free port
        self.path = path
        self.user = user
        self._free = threading.BoundedSemaphore(_CLIENTS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve the client in a separate thread, unless there are too many."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve the client, then allow another one."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()
