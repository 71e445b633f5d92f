"""Difference as text: a summary line, and a few examples of either side."""

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Final

from oracles.framework.comparison import Aspect, Location, Reading, reading, row_multiset
from oracles.model.case import Case
from oracles.model.observation import CaseObservation, Message, Observation, ResultColumn

ROWS_SHOWN: Final = 5
WIDTH_SHOWN: Final = 300  # characters of a row or a message


@dataclass(frozen=True, slots=True)
class DifferenceText:
    """The text of a difference: one line, and the behaviour of either side."""

    summary: str
    expected: str
    actual: str


def row_text(row: bytes) -> str:
    """Return a DataRow's values as text, or a CopyData payload unchanged."""
    values = row_values(row)
    if values is None:
        return _shortened(row.decode(errors="backslashreplace").rstrip("\n"))
    return _shortened(" | ".join(texts_of(row)))


def texts_of(row: bytes) -> list[str]:
    """Return the values of a DataRow as text, nulls as "NULL"; an empty list for any other payload."""
    return ["NULL" if value is None else value.decode(errors="backslashreplace") for value in row_values(row) or ()]


def row_values(row: bytes) -> list[bytes | None] | None:
    """Return the values of a DataRow; None if the bytes are not exactly one."""
    if len(row) < 2:
        return None
    values: list[bytes | None] = []
    position = 2
    for _ in range(struct.unpack_from("!H", row)[0]):
        if position + 4 > len(row):
            return None
        (length,) = struct.unpack_from("!i", row, position)
        position += 4 + max(length, 0)
        if position > len(row):
            return None
        values.append(None if length < 0 else row[position - length : position])
    return values if position == len(row) else None


def _shortened(text: str) -> str:
    return text if len(text) <= WIDTH_SHOWN else f"{text[:WIDTH_SHOWN]}... ({len(text)} characters)"


def outcome_text(seen: Observation) -> str:
    """Return `ok`, the SQLSTATE of an error, or the name of another outcome."""
    return seen.sqlstate or seen.outcome.value


def difference_text(case: Case, place: Location, left: CaseObservation, right: CaseObservation) -> DifferenceText:
    """Return the text of the difference at this place."""
    if place.aspect is Aspect.CLOSING:
        summary = "after the case: pgduel's own statements end in other errors"
        return DifferenceText(summary, closing_text(left), closing_text(right))
    if place.step is None:
        ours, theirs = dict(left.digests).get(place.reported), dict(right.digests).get(place.reported)
        summary = f"after the case: {place.reported} differs in {place.aspect}"
        return DifferenceText(summary, ours or "is not there", theirs or "is not there")
    before, after = left.steps[place.step], right.steps[place.step]
    if place.aspect in (Aspect.ROWS, Aspect.ROW_COUNT):
        text = _rows_text(reading(case.all_steps[place.step], case.modes), before, after)
    elif place.aspect in (Aspect.MESSAGES, Aspect.TEXTS, Aspect.FIELDS):
        ours, theirs = _messages_beyond(before, after), _messages_beyond(after, before)
        text = DifferenceText(f"differs in {place.aspect}", ours, theirs)
    else:
        as_text = _AS_TEXT[place.aspect]
        text = DifferenceText(f"differs in {place.aspect}", as_text(before), as_text(after))
    return DifferenceText(f"step {place.step}: {text.summary}", text.expected, text.actual)


def _rows_text(how: Reading, before: Observation, after: Observation) -> DifferenceText:
    if before.rows == after.rows:
        return DifferenceText("same rows", ended(before), ended(after))
    ours, theirs = row_multiset(before.rows), row_multiset(after.rows)
    if how is Reading.SEQUENCE and ours == theirs:
        return _order_text(before.rows, after.rows)
    missing, surplus = ours - theirs, theirs - ours
    rows = "1 row" if missing.total() == 1 else f"{missing.total()} rows"
    return DifferenceText(
        f"{rows} missing, {surplus.total()} surplus, of {len(before.rows)}",
        rows_text("these rows, which are missing", missing),
        rows_text("these rows, which are surplus", surplus),
    )


def rows_text(what: str, rows: Counter[bytes]) -> str:
    """Return one line for each of the first few rows in byte order, with the number of its occurrences."""
    if not rows:
        return "no others"
    shown = [f"  {row_text(row)}" + (f"  ({times} times)" if times > 1 else "") for row, times in sorted(rows.items())]
    more = [f"  ... and {len(shown) - ROWS_SHOWN} more"] if len(shown) > ROWS_SHOWN else []
    return "\n".join([f"{what}:", *shown[:ROWS_SHOWN], *more])


def _order_text(before: Sequence[bytes], after: Sequence[bytes]) -> DifferenceText:
    pairs = enumerate(zip_longest(before, after))
    first = next(position for position, (ours, theirs) in pairs if ours != theirs)
    return DifferenceText(
        f"same rows in another order, from row {first} of {len(before)}",
        "\n".join(_from(before, first)),
        "\n".join(_from(after, first)),
    )


def _from(rows: Sequence[bytes], first: int) -> Iterable[str]:
    return (
        f"  {first + offset}: {row_text(row)}" for offset, row in enumerate(islice(rows, first, first + ROWS_SHOWN))
    )


def ended(seen: Observation) -> str:
    """Return the outcome of a step, and its errors."""
    errors = [f"  {each.severity}: {_shortened(each.text)}" for each in seen.messages if each.severity == "ERROR"]
    return "\n".join([outcome_text(seen), *errors])


def closing_text(seen: CaseObservation) -> str:
    """Return the errors of the statements with which pgduel ends the case."""
    return "\n".join(map(message_text, seen.closing)) or "no error"


def _messages_beyond(seen: Observation, other: Observation) -> str:
    beyond = Counter(seen.messages) - Counter(other.messages)
    return "\n".join(map(message_text, islice(beyond.elements(), ROWS_SHOWN))) or "no others"


def message_text(message: Message) -> str:
    """Return severity, SQLSTATE, text and fields of a message."""
    fields = ", ".join(f"{name} {_shortened(value)}" for name, value in message.fields)
    return f"{message.severity} {message.sqlstate}: {_shortened(message.text)}" + (f" ({fields})" if fields else "")


def _columns_text(columns: Sequence[ResultColumn]) -> str:
    return "\n".join(map(_column_text, columns)) or "none"


def _column_text(column: ResultColumn) -> str:
    facts = f"length {column.length}, modifier {column.modifier}, attribute {column.attribute}"
    return f"{column.name}: type {column.type}, {facts}" + (", binary" if column.binary else "")


_AS_TEXT: Final[Mapping[Aspect, Callable[[Observation], str]]] = {
    Aspect.OUTCOME: ended,
    Aspect.COLUMNS: lambda seen: "\n\n".join(map(_columns_text, (*seen.earlier_columns, seen.columns))),
    Aspect.TAGS: lambda seen: ", ".join(seen.tags) or "none",
    Aspect.PROTOCOL: lambda seen: "\n".join(seen.protocol) or "none",
    Aspect.TRANSACTION: lambda seen: seen.transaction or "unknown",
}
