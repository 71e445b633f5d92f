"""Binary COPY data that end at each place of the format, or are wrong there."""

import random
from typing import Final

from fuzz.generators.choices import between, pick
from fuzz.generators.copy_batches.formats import SIGNATURE, TRAILER
from fuzz.generators.copy_batches.values import field, int4, text
from fuzz.generators.copy_batches.written import WrittenCopy

_FLAGS: Final = bytes(4)
_HEADER: Final = SIGNATURE + _FLAGS + bytes(4)  # without an extension
_COUNT: Final = b"\x00\x02"  # number of fields
_NUMBER: Final = field(int4(7))
_ROW: Final = _COUNT + _NUMBER + field(text("seven"))
_NULLS: Final = _COUNT + field(None) * 2

_VALID: Final = (
    _HEADER,
    _HEADER + b"\x00",  # an incomplete number of fields counts as the end
    _HEADER + _ROW + _NULLS,
    _HEADER + _NULLS + _ROW + TRAILER,
    SIGNATURE + b"\x00\x00\x12\x34" + bytes(4) + _ROW + TRAILER,  # COPY ignores the lower flags
    SIGNATURE + _FLAGS + b"\x00\x00\x00\x05extra" + _ROW + TRAILER,
)
_REFUSED: Final = (
    SIGNATURE[:6],
    b"PGCOPX" + _HEADER[6:],
    SIGNATURE,
    SIGNATURE + b"\x00\x00",
    SIGNATURE + b"\x00\x01\x00\x00" + bytes(4),  # with OIDs, as before PostgreSQL 12
    SIGNATURE + b"\x00\x02\x00\x00" + bytes(4),
    SIGNATURE + _FLAGS + b"\x00",
    SIGNATURE + _FLAGS + b"\xff\xff\xff\xff",
    SIGNATURE + _FLAGS + b"\x00\x00\x00\x05ext",
    _HEADER + b"\x00\x01" + _NUMBER,
    _HEADER + _COUNT,
    _HEADER + _COUNT + b"\x00\x00",
    _HEADER + _COUNT + b"\x00\x00\x00\x04\x00",
    _HEADER + _COUNT + b"\x00\x00\x00\x03\x00\x00\x07" + field(None),
    _HEADER + _COUNT + b"\x00\x00\x00\x05\x00\x00\x00\x07\x07" + field(None),
    _HEADER + _COUNT + b"\xff\xff\xff\xfe" + field(None),
    _HEADER + _ROW + _ROW[:-1],
    _HEADER + _ROW + TRAILER + b"x",
)


def binary(rng: random.Random) -> WrittenCopy:
    """Return binary data of a few rows, or data with one mistake."""
    fails = between(rng, 0, 2) > 0
    return WrittenCopy("two_columns", "FORMAT binary", pick(rng, _REFUSED if fails else _VALID), "binary", fails)
