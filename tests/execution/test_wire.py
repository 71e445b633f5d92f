"""Tests of the protocol driver on a real server: arbitrary fragments, and replies before a lost connection."""

import os
import select
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import cycle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.execution import messages, wire
from fuzz.execution.exchanges import Exchange, run_exchanges
from fuzz.execution.wire import Reply, Wire
from fuzz.servers.arm import Arm
from fuzz.servers.cluster import await_connections

pytestmark = [pytest.mark.servers, pytest.mark.quick, pytest.mark.timeout(120)]

ROWS = [(str(number), "x" * (number * 37 % 400) or None) for number in range(60)]
SENT = (
    messages.query("BEGIN")
    + messages.query("SELECT n, nullif(repeat('x', n * 37 % 400), '') FROM generate_series(0, 59) AS n")
    + messages.query("COPY (VALUES ('copied'), ('as well')) TO STDOUT")
    + messages.query("SELECT 1 / 0")
)
MANY = "SELECT n, repeat('x', 400) FROM generate_series(1, 1000) AS n WHERE n < 900 OR {} IS NULL"


@contextmanager
def connected(arm: Arm) -> Iterator[Wire]:
    cluster = arm.cluster
    with closing(Wire(cluster.socket_dir, cluster.port, {"user": "postgres", "database": "postgres"})) as connection:
        yield connection


def listen(connection: Wire) -> Exchange[list[Reply]]:
    yield connection
    return connection.replies


def cut(connection: Wire, sizes: Sequence[int]) -> list[Reply]:
    """Return the replies, read in fragments of these sizes, which repeat."""
    pieces = cycle(sizes)
    with pytest.MonkeyPatch.context() as patch:
        while not connection.settled:
            connection.pump_out()
            ready, _, _ = select.select([connection], [], [], 60)
            assert ready
            patch.setattr(wire, "RECEIVE_BYTES", next(pieces))
            connection.pump_in()
    return connection.replies


@given(st.lists(st.integers(1, 400) | st.integers(400, 8000), min_size=1, max_size=8))
def test_replies_do_not_depend_on_the_fragments(twins: tuple[Arm, ...], sizes: list[int]) -> None:
    with connected(twins[0]) as connection:
        connection.send(SENT, 4)
        _, begun, selected, copied, failed = cut(connection, sizes)
        assert connection.pid
    assert [reply.status for reply in (begun, selected, copied, failed)] == ["T", "T", "T", "E"]
    assert [tuple(messages.values_of(row)) for row in selected.rows] == ROWS
    assert selected.others[-1] == (messages.COMMAND_COMPLETE, b"SELECT 60\0")
    assert copied.rows == [b"copied\n", b"as well\n"]
    assert [kind for kind, _ in failed.others if kind == messages.ERROR_RESPONSE] == [messages.ERROR_RESPONSE]


@given(st.lists(st.integers(1, 400) | st.integers(400, 8000), min_size=1, max_size=8))
def test_rows_beyond_the_limit_are_dropped(twins: tuple[Arm, ...], sizes: list[int]) -> None:
    size = sum(len(b"".join(value.encode() for value in row if value)) + 2 + 4 * len(row) for row in ROWS)
    for limit, dropped in ((size, False), (size - 1, True)):
        with connected(twins[0]) as connection, pytest.MonkeyPatch.context() as patch:
            patch.setattr(wire, "RESULT_BYTES", limit)
            connection.send(SENT, 4)
            _, begun, selected, copied, _ = cut(connection, sizes)
        assert [reply.too_large for reply in (begun, selected, copied)] == [False, dropped, False]
        assert (selected.status, selected.others[-1]) == ("T", (messages.COMMAND_COMPLETE, b"SELECT 60\0"))
        assert len(selected.rows) == (0 if dropped else 60)


def test_a_large_row_takes_no_longer_than_many_small_ones(twins: tuple[Arm, ...]) -> None:
    with connected(twins[0]) as connection:
        connection.send(messages.query("SELECT repeat('x', 60000000)"), 1)
        _, large = run_exchanges([listen(connection)], 20)[0]
    assert [len(row) for row in large.rows] == [60_000_006]


def numbers(connection: Wire) -> list[str | None]:
    return [messages.values_of(row)[0] for row in connection.partial.rows]


def test_replies_before_a_lost_connection_are_kept(twins: tuple[Arm, ...]) -> None:
    with connected(twins[0]) as connection:
        connection.send(messages.query(MANY.format("pg_terminate_backend(pg_backend_pid())")), 1)
        (replies,) = run_exchanges([listen(connection)], 60)
        assert connection.lost
    assert len(replies) == 1  # the startup's
    assert numbers(connection) == list(map(str, range(1, 900)))
    kind, message = connection.partial.others[-1]
    assert (kind, messages.message_of(message).sqlstate) == (messages.ERROR_RESPONSE, "57P01")


def test_an_incomplete_row_is_left_out(twins: tuple[Arm, ...]) -> None:
    """A killed server has sent full buffers, which end within a row."""
    with connected(twins[0]) as connection:
        connection.send(messages.query(MANY.format("pg_sleep(60)")), 1)
        while len(connection.partial.rows) <= 800:
            run_exchanges([listen(connection)], 0.5)
            assert not connection.lost
        os.kill(connection.pid, signal.SIGKILL)
        run_exchanges([listen(connection)], 60)
        assert connection.lost
    came = numbers(connection)
    assert len(came) < 899
    assert came == list(map(str, range(1, len(came) + 1)))
    await_connections(twins[0].cluster)


@contextmanager
def changed_replies(arm: Arm, directory: Path, sent: bytes, instead: bytes) -> Iterator[Wire]:
    """Connect to a real server through a socket that replaces bytes of its replies."""
    cluster = arm.cluster
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as server:
        listener.bind(str(directory / f".s.PGSQL.{cluster.port}"))
        listener.listen()
        with closing(Wire(directory, cluster.port, {"user": "postgres", "database": "postgres"})) as connection:
            client, _ = listener.accept()
            server.connect(str(cluster.socket_dir / f".s.PGSQL.{cluster.port}"))
            with client:
                connection.pump_out()
                server.sendall(client.recv(1 << 16))
                client.sendall(_received(server, b"Z\0\0\0\5I").replace(sent, instead))
                yield connection


def _received(server: socket.socket, end: bytes) -> bytes:
    data = b""
    while not data.endswith(end):
        data += server.recv(1 << 16)
    return data


@pytest.mark.parametrize(
    ("sent", "instead", "message"),
    [
        (b"Z\0\0\0\5I", b"Z\0\0\0\4", "a message of type 'Z' with an unknown status, b''"),
        (b"Z\0\0\0\5I", b"Z\0\0\0\5?", "a message of type 'Z' with an unknown status, b'?'"),
        (b"Z\0\0\0\5I", b"Z\0\0\0\3I", "a message of type 'Z' with a length of 3"),
        (b"Z\0\0\0\5I", b"D\xff\xff\xff\xff", "a message of type 'D' with a length of 4294967295"),
        (b"K\0\0\0\x0c", b"K\0\0\0\7", "a message of type 'K' with 3 bytes"),
        (b"Z\0\0\0\5I", b"T\0\0\0\x06\0\1Z\0\0\0\5I", "a message of type 'T' with incomplete columns"),
        (b"Z\0\0\0\5I", b"H\0\0\0\x07\0\0\2Z\0\0\0\5I", "a message of type 'H' with incomplete formats of columns"),
    ],
    ids=["no status", "unknown status", "too short", "too long", "no process", "no columns", "no formats"],
)
def test_malformed_messages_end_the_connection_with_an_error(
    twins: tuple[Arm, ...], tmp_path: Path, sent: bytes, instead: bytes, message: str
) -> None:
    with changed_replies(twins[0], tmp_path, sent, instead) as connection:
        run_exchanges([listen(connection)], 60)
        assert connection.lost
    kind, payload = connection.partial.others[-1]
    error = messages.message_of(payload)
    assert kind == messages.ERROR_RESPONSE
    assert (error.severity, error.sqlstate, error.text) == ("FATAL", "08P01", f"the server sent {message}")


def test_a_silent_server_times_out(twins: tuple[Arm, ...]) -> None:
    with connected(twins[0]) as connection:
        connection.send(messages.query("SELECT pg_sleep(2)"), 1)
        run_exchanges([listen(connection)], 0.05)
        assert not connection.settled
        assert not connection.lost
