"""Tests of exchanges, and of messages of the protocol."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.errors import ServerError
from fuzz.execution import messages
from fuzz.execution.exchanges import Exchange, run_exchanges
from fuzz.execution.wire import Wire


def test_a_refused_connection_is_an_error_with_the_sockets_path(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=f"{tmp_path}, port 5432"):
        Wire(tmp_path, 5432, {})


def test_results_of_exchanges_are_in_the_order_of_their_start() -> None:
    def pause(seconds: float) -> Exchange[float]:
        yield seconds
        return seconds

    assert run_exchanges([pause(0.03), pause(0.0), pause(0.01)], 1) == [0.03, 0.0, 0.01]


def test_an_error_in_an_exchange_closes_the_others() -> None:
    closed = []

    def waiting() -> Exchange[None]:
        try:
            yield 60.0
        finally:
            closed.append(True)

    def failing() -> Exchange[None]:
        yield 0.0
        raise ServerError("no")

    with pytest.raises(ServerError):
        run_exchanges([waiting(), failing()], 1)
    assert closed == [True]


def test_messages_lack_details_of_the_session() -> None:
    fields = b"SFEHLER\0VERROR\0C22012\0Mdivision by zero\0Hno\0Wline 1\nparallel worker\nline 2\0Fint.c\0\0"
    seen = messages.message_of(fields)
    assert (seen.severity, seen.sqlstate) == ("ERROR", "22012")
    assert seen.text == "division by zero\nHINT: no\nCONTEXT: line 1\nCONTEXT: line 2"
    seen = messages.message_of(b"VNOTICE\0C00000\0Mdrop cascades to function pg_temp_12.f(e)\0\0")
    assert seen.text == "drop cascades to function pg_temp.f(e)"


def test_messages_have_fields_in_a_fixed_order_without_numbers_of_sessions() -> None:
    fields = b"VERROR\0C23505\0Mno\0P7\0spg_temp_12\0tt\0nt_pkey\0qSELECT pg_temp_12.t\0Fint.c\0L7\0Rf\0\0"
    assert messages.message_of(fields).fields == (
        *(("schema", "pg_temp"), ("table", "t"), ("constraint", "t_pkey"), ("position", "7")),
        ("internal query", "SELECT pg_temp.t"),
    )


@given(st.lists(st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_values_of_a_row_are_decoded(values: list[str | None]) -> None:
    encoded = [None if value is None else value.encode() for value in values]
    row = len(values).to_bytes(2, "big") + b"".join(
        b"\xff\xff\xff\xff" if value is None else len(value).to_bytes(4, "big") + value for value in encoded
    )
    assert messages.values_of(row) == values


@given(st.binary(max_size=1 << 18))
def test_copy_data_has_the_exact_bytes(data: bytes) -> None:
    frames, carried = messages.copy_data(data), b""
    while frames:
        length = int.from_bytes(frames[1:5], "big") + 1
        assert frames[:1] == b"d"
        carried, frames = carried + frames[5:length], frames[length:]
    assert carried == data
