"""Messages are written and read as they are; exchanges end in any order."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.errors import ServerError
from fuzz.execution import messages
from fuzz.execution.exchanges import Exchange, run_exchanges
from fuzz.execution.wire import Wire


def test_nobody_listening_is_an_error_that_names_the_place(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=f"{tmp_path}, port 5432"):
        Wire(tmp_path, 5432, {})


def test_conversations_return_in_their_order_though_they_end_in_another() -> None:
    def pause(seconds: float) -> Exchange[float]:
        yield seconds
        return seconds

    assert run_exchanges([pause(0.03), pause(0.0), pause(0.01)], 1) == [0.03, 0.0, 0.01]


def test_an_error_in_a_conversation_closes_the_others() -> None:
    closed = []

    def patient() -> Exchange[None]:
        try:
            yield 60.0
        finally:
            closed.append(True)

    def failing() -> Exchange[None]:
        yield 0.0
        raise ServerError("no")

    with pytest.raises(ServerError):
        run_exchanges([patient(), failing()], 1)
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
