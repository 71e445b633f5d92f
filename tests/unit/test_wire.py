"""The protocol driver reads what a server sends however it is cut, and writes what servers take."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.errors import ServerError
from fuzz.execution import messages
from fuzz.execution.loop import Talk, converse
from fuzz.execution.wire import Reply, Wire


def message(kind: bytes, payload: bytes) -> bytes:
    return kind + (len(payload) + 4).to_bytes(4, "big") + payload


ROWS = [b"\0\1\0\0\0\1" + bytes([number]) * (number * 37 % 400) for number in range(60)]
STREAM = (
    message(b"R", b"\0\0\0\0")
    + message(b"K", (4711).to_bytes(4, "big") + b"\1\2\3\4")
    + message(b"Z", b"I")
    + b"".join(message(b"D", row) for row in ROWS)
    + message(b"C", b"SELECT 60\0")
    + message(b"Z", b"T")
    + message(b"d", b"copied\n")
    + message(b"Z", b"E")
)


@contextmanager
def served(directory: Path, chunks: list[bytes]) -> Iterator[None]:
    """Listen like a server that sends these chunks, whatever it is told, and hangs up."""
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(directory / ".s.PGSQL.5432"))
        listener.listen()

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                for chunk in chunks:
                    connection.sendall(chunk)

        thread = threading.Thread(target=answer)
        thread.start()
        yield
        thread.join()


def listen(connection: Wire) -> Talk[list[Reply]]:
    yield connection
    return connection.replies


@given(st.lists(st.integers(1, len(STREAM) - 1), max_size=8).map(sorted))
def test_replies_are_the_same_however_the_stream_is_cut(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    directory = tmp_path_factory.mktemp("s")
    edges = [0, *cuts, len(STREAM)]
    chunks = [STREAM[start:end] for start, end in pairwise(edges)]
    with served(directory, chunks):
        connection = Wire(directory, 5432, {"user": "postgres"})
        connection.send(b"", 2)
        (replies,) = converse([listen(connection)], 5)
        connection.close()
    assert connection.pid == 4711
    assert [reply.status for reply in replies] == ["I", "T", "E"]
    assert [len(reply.rows) for reply in replies] == [0, 60, 1]
    assert replies[1].rows == ROWS
    assert replies[1].others == [(ord("C"), b"SELECT 60\0")]
    assert replies[2].rows == [b"copied\n"]


def test_what_came_before_a_connection_was_lost_is_kept(tmp_path: Path) -> None:
    cut = STREAM[: STREAM.index(message(b"C", b"SELECT 60\0"))]
    with served(tmp_path, [cut]):
        connection = Wire(tmp_path, 5432, {"user": "postgres"})
        connection.send(messages.query("SELECT"), 1)
        (replies,) = converse([listen(connection)], 5)
        assert connection.lost
        connection.close()
    assert len(replies) == 1
    assert connection.partial.rows == ROWS


def test_a_silent_server_is_given_up(tmp_path: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(tmp_path / ".s.PGSQL.5432"))
        listener.listen()
        connection = Wire(tmp_path, 5432, {"user": "postgres"})
        converse([listen(connection)], 0.05)
        assert not connection.settled
        connection.close()


def test_nobody_listening_is_an_error_that_names_the_place(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=f"{tmp_path}, port 5432"):
        Wire(tmp_path, 5432, {})


def test_conversations_return_in_their_order_though_they_end_in_another() -> None:
    def pause(seconds: float) -> Talk[float]:
        yield seconds
        return seconds

    assert converse([pause(0.03), pause(0.0), pause(0.01)], 1) == [0.03, 0.0, 0.01]


def test_an_error_in_a_conversation_closes_the_others() -> None:
    closed = []

    def patient() -> Talk[None]:
        try:
            yield 60.0
        finally:
            closed.append(True)

    def failing() -> Talk[None]:
        yield 0.0
        raise ServerError("no")

    with pytest.raises(ServerError):
        converse([patient(), failing()], 1)
    assert closed == [True]


def test_messages_show_what_matters_and_not_who_met_it() -> None:
    fields = b"SFEHLER\0VERROR\0C22012\0Mdivision by zero\0Hno\0Wline 1\nparallel worker\nline 2\0Fint.c\0\0"
    seen = messages.message_of(fields)
    assert (seen.severity, seen.sqlstate) == ("ERROR", "22012")
    assert seen.text == "division by zero\nHINT: no\nCONTEXT: line 1\nCONTEXT: line 2"


@given(st.lists(st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_values_of_a_row_come_back(values: list[str | None]) -> None:
    encoded = [None if value is None else value.encode() for value in values]
    row = len(values).to_bytes(2, "big") + b"".join(
        b"\xff\xff\xff\xff" if value is None else len(value).to_bytes(4, "big") + value for value in encoded
    )
    assert messages.values_of(row) == values


@given(st.binary(max_size=1 << 18))
def test_copy_data_carries_the_bytes_as_they_are(data: bytes) -> None:
    frames, carried = messages.copy_data(data), b""
    while frames:
        length = int.from_bytes(frames[1:5], "big") + 1
        assert frames[:1] == b"d"
        carried, frames = carried + frames[5:length], frames[length:]
    assert carried == data
