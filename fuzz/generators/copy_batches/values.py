"""Column types and their values, in the text form of COPY's text and CSV formats and in the binary form."""

import datetime
import hashlib
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from fuzz.generators.choices import Weighted, between, pick

INT4_OID, TEXT_OID = 23, 25


class Value(NamedTuple):
    """A datum: the results of its type's output function and send function."""

    text: str
    binary: bytes


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A column type. `bad` is input that it refuses, or None if it accepts any text."""

    sql: str
    draw: Callable[[random.Random], Value]
    bad: str | None = None


def int4(number: int) -> Value:
    """Return an integer, also for domains over integer."""
    return Value(str(number), struct.pack("!i", number))


def text(string: str) -> Value:
    """Return a string of any text-like type."""
    return Value(string, string.encode())


def int4range(low: int, high: int) -> Value:
    """Return the range [low, high)."""
    return Value(f"[{low},{high})", b"\x02" + struct.pack("!iiii", 4, low, 4, high))


def noise(seed: int, length: int) -> Value:
    """Return a string of `length` hexadecimal digits; compression saves at most half."""
    digits = hashlib.shake_128(str(seed).encode()).hexdigest((length + 1) // 2)
    return text(digits[:length])


def numeric(number: str) -> Value:
    """Return a decimal number given as digits with an optional sign and point."""
    sign, digits = (0x4000, number[1:]) if number.startswith("-") else (0, number)
    whole, _, fraction = digits.partition(".")
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    padded = whole + fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    groups = [int(padded[at : at + 4]) for at in range(0, len(padded), 4)]
    weight = len(whole) // 4 - 1
    while groups and groups[0] == 0:
        groups, weight = groups[1:], weight - 1
    while groups and groups[-1] == 0:
        groups.pop()
    header = struct.pack("!hhHH", len(groups), weight, sign, len(fraction))
    return Value(number, header + struct.pack(f"!{len(groups)}h", *groups))


def _array(oid: int, elements: tuple[Value | None, ...]) -> Value:
    dimensions = struct.pack("!iiI", 1, int(None in elements), oid) + struct.pack("!ii", len(elements), 1)
    written = ",".join("NULL" if element is None else element.text for element in elements)
    return Value("{" + written + "}", dimensions + b"".join(map(field, elements)))


def field(value: Value | None) -> bytes:
    """Return a datum after its length, as in binary COPY, arrays and composites."""
    if value is None:
        return struct.pack("!i", -1)
    return struct.pack("!i", len(value.binary)) + value.binary


def _pair(rng: random.Random) -> Value:
    first, second = int4(between(rng, -9, 9)), text(pick(rng, ("a", "bc", "d e")))
    fields = struct.pack("!I", INT4_OID) + field(first) + struct.pack("!I", TEXT_OID) + field(second)
    quoted = f'"{second.text}"' if " " in second.text else second.text
    return Value(f"({first.text},{quoted})", struct.pack("!i", 2) + fields)


def _date(rng: random.Random) -> Value:
    days = between(rng, -40_000, 40_000)
    day = datetime.date(2000, 1, 1) + datetime.timedelta(days=days)
    return Value(day.isoformat(), struct.pack("!i", days))


def _timestamp(rng: random.Random) -> Value:
    seconds = between(rng, -(10**9), 10**9)
    moment = datetime.datetime(2000, 1, 1) + datetime.timedelta(seconds=seconds)
    return Value(moment.isoformat(sep=" "), struct.pack("!q", seconds * 1_000_000))


def _interval(rng: random.Random) -> Value:
    months, days, seconds = between(rng, 0, 11), between(rng, 0, 30), between(rng, 0, 59)
    return Value(
        f"{months} mons {days} days 00:00:{seconds:02}", struct.pack("!qii", seconds * 1_000_000, days, months)
    )


def _uuid(rng: random.Random) -> Value:
    digits = f"{rng.randrange(2**32):032x}"
    split = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return Value(split, bytes.fromhex(digits))


def _bytea(rng: random.Random) -> Value:
    data = bytes(rng.randrange(256) for _ in range(pick(rng, (0, 1, 3, 9))))
    return Value("\\x" + data.hex(), data)


def _int4_array(rng: random.Random) -> Value:
    drawn = (between(rng, -99, 99) for _ in range(between(rng, 1, 4)))
    return _array(INT4_OID, tuple(None if number == 0 else int4(number) for number in drawn))


def _packed(layout: str, numbers: tuple[int | float, ...]) -> Callable[[random.Random], Value]:
    def draw(rng: random.Random) -> Value:
        number = pick(rng, numbers)
        return Value(str(number), struct.pack(layout, number))

    return draw


def _among(make: Callable[[str], Value], *strings: str) -> Callable[[random.Random], Value]:
    return lambda rng: make(pick(rng, strings))


def _json(string: str) -> Value:
    return Value(string, b"\x01" + string.encode())


def _boolean(string: str) -> Value:
    return Value(string, b"\x01" if string == "t" else b"\x00")


# Strings with characters that are special in a format, and ordinary ones. All exist in LATIN1.
STRINGS = (
    *("", "a", "plain text", "comma,semi;pipe|tab\there", 'say "hi"', "it's", "back\\slash", "two\nlines"),
    *(
        "car\rriage",
        "caf\u00e9",
        " padded ",
        "\\N",
        "NULL",
        "~",
        "100%",
        "#1",
        "\\.x",
        "\u00fc\u00df\u00f8",
        "\x01\x7f",
    ),
)

INT4 = ColumnType("int4", _packed("!i", (0, 1, -1, 42, 2**31 - 1, -(2**31))), "12x")
TEXT = ColumnType("text", _among(text, *STRINGS))
INT4RANGE = ColumnType("int4range", lambda rng: int4range(between(rng, 0, 9), between(rng, 10, 19)), "[3,")

TYPES: Weighted[ColumnType] = Weighted(
    (8, INT4),
    (8, TEXT),
    (3, ColumnType("int2", _packed("!h", (0, 1, -1, 32767, -32768)), "99999")),
    (4, ColumnType("int8", _packed("!q", (0, 7, -7, 2**63 - 1, -(2**63))), "1e3")),
    (2, ColumnType("float8", _packed("!d", (0.5, -1.25, 3.0, 1e100)), "1.2.3")),
    (4, ColumnType("numeric", _among(numeric, "0.50", "12345678.9", "-99999999", "7", "0.000123"), "1-2")),
    (3, ColumnType("bool", _among(_boolean, "t", "f"), "maybe")),
    (3, ColumnType("varchar(12)", _among(text, "", "x", "twelve chars"), "thirteen char")),
    (2, ColumnType("char(6)", _among(text, "a", "sixsix"), "seven77")),
    (3, ColumnType("bytea", _bytea, "\\xzz")),
    (3, ColumnType("date", _date, "2000-13-01")),
    (3, ColumnType("timestamp", _timestamp, "yesterweek")),
    (2, ColumnType("interval", _interval, "1 lightyear")),
    (2, ColumnType("uuid", _uuid, "0-0")),
    (3, ColumnType("jsonb", _among(_json, "{}", '{"a": [1, null]}', '"s"', "-1"), "{")),
    (2, ColumnType("int4[]", _int4_array, "{1,")),
    (2, INT4RANGE),
    (3, ColumnType("mood", _among(text, "sad", "so-so", "happy"), "angry")),
    (3, ColumnType("small", lambda rng: int4(between(rng, -9, 99)), "5000")),
    (3, ColumnType("pair", _pair, "(1")),
)

# User-defined types that a scene creates before its tables.
USER_TYPES = (
    "CREATE TYPE mood AS ENUM ('sad', 'so-so', 'happy')",
    "CREATE DOMAIN small AS int4 CHECK (VALUE < 1000)",
    "CREATE TYPE pair AS (a int4, b text)",
)


def make_type(rng: random.Random) -> ColumnType:
    """Return the type of a data column."""
    return TYPES.pick(rng)
