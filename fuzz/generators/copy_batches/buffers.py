r"""COPY data in which the input buffer ends within a newline, an escape, an end marker, quotes or a character.

COPY then reads more data before it decides. The client sends messages of the buffer's size, so the first buffer ends
where the first message does.
"""

import random
from dataclasses import dataclass
from typing import Final

from fuzz.generators.choices import Weighted, between, chance, pick
from fuzz.generators.copy_batches.written import WrittenCopy

BUFFER_BYTES: Final = 65536  # RAW_BUF_SIZE and INPUT_BUF_SIZE of copyfrom_internal.h


@dataclass(frozen=True, slots=True)
class Divided:
    """A second line, in which the bytes of `token` are divided between two buffers."""

    lead: str
    token: str
    rest: str
    options: str = ""
    newline: str = "\n"
    ignored: bool = False  # COPY ignores the data after the line


_TEXT: Final = (
    Divided("a", "\\n", "b"),
    Divided("a", "\\101", "b"),
    Divided("a", "\\x41", "b"),
    Divided("a", "\\\\", "b"),
    Divided("a", "\r\n", "b", newline="\r\n"),
    Divided("a", "\r", "b", newline="\r"),
    Divided("", "\\.\n", "", ignored=True),
    Divided("", "\\.\r\n", "", newline="\r\n", ignored=True),
    Divided("", "\\.\r", "", newline="\r", ignored=True),
    Divided("a", "\\.\n", "", ignored=True),
)
_CSV: Final = (
    Divided('"a', '""', 'b"'),
    Divided('"a', '"\n', "b"),
    Divided('"a', '\\"', 'b"', options=", ESCAPE '\\'"),
    Divided('"a', "\\\\", 'b"', options=", ESCAPE '\\'"),
    Divided('"a', "\r\n", 'b"'),
    Divided("a", "\r\n", "b", newline="\r\n"),
    Divided("a", "\r", "b", newline="\r"),
    Divided("", "\\b", ""),
    Divided("a", "\\b", ""),
    Divided("", "\\.b", ""),
    Divided("", "\\.\n", "", ignored=True),
    Divided("", "\\.\r\n", "", newline="\r\n", ignored=True),
    Divided("", "\\.b", "", newline="\r\n"),
)
_CHARACTERS: Final = {None: "\u8868", "LATIN1": "\u00fc", "EUC_JP": "\u8868", "SJIS": "\u8868", "GB18030": "\U00020000"}
_ENCODINGS: Final = Weighted((6, None), (3, "LATIN1"), (1, "EUC_JP"), (1, "SJIS"), (1, "GB18030"))


def divided(rng: random.Random) -> WrittenCopy:
    """Return three lines: the first one fills the buffer up to a byte of the second line's token."""
    csv = chance(rng, 50)
    encoding = _ENCODINGS.pick(rng)
    line = pick(rng, _CSV if csv else _TEXT)
    if chance(rng, 25):
        line = Divided("a", _CHARACTERS[encoding], "b")
    options = [f"FORMAT csv{line.options}"] if csv else []
    options += [f"ENCODING '{encoding}'"] if encoding else []
    return WrittenCopy("one_text", ", ".join(options), _data(rng, line, encoding or "UTF8"), "divided")


def _data(rng: random.Random, line: Divided, encoding: str) -> bytes:
    newline, token = line.newline.encode(), line.token.encode(encoding)
    ahead = newline + line.lead.encode()
    first = b"p" * (BUFFER_BYTES - len(ahead) - between(rng, 1, len(token)))
    last = b"q" * pick(rng, (1, BUFFER_BYTES + 9))  # with the longer one, the third message exceeds the buffer
    end = b"" if line.ignored else newline
    return first + ahead + token + line.rest.encode() + end + last + (newline if chance(rng, 50) else b"")
