"""COPY of texts with control characters, in encodings that only clients have, and in others.

In encodings for clients only, the second byte of a character may be an ASCII character, such as a backslash or `|`.
"""

import random
from dataclasses import replace
from typing import Final

from fuzz.generators.choices import Weighted, between, chance, pick
from fuzz.generators.copy_batches.formats import (
    CSV_DELIMITERS,
    HEADERS_OUT,
    LINE_FORMATS,
    QUOTES,
    Format,
    Options,
)
from fuzz.generators.copy_batches.written import WrittenCopy
from oracles.model.case import Kind, Step

# Characters of each encoding. Most of them have a backslash or `|` as their second byte.
_CHARACTERS: Final = {
    "SJIS": "\u8868\u5341\u5f13\u6383a",
    "BIG5": "\u8a31\u4e48\u8c79a",
    "GBK": "\u4e57\u6dfa\u6736a",
    "UHC": "\uac02\uac00\u4e00a",
    "JOHAB": "\u314d\uadf6\uafb6a",
    "GB18030": "\u4e57\u6dfa\U00020000a",
    "UTF8": "\u00fc\u8868\U00020000a",
    "SQL_ASCII": "\u00fc\u8868\U00020000a",  # without conversion
    "LATIN1": "\u00fc\u00df\u00f8a",
}
_ENCODINGS: Final = Weighted(*((7 if name in ("SJIS", "UTF8") else 2, name) for name in _CHARACTERS))
_COMPLETE: Final = ("GB18030", "UTF8", "SQL_ASCII")  # encodings of all characters
_LACKING: Final = "\U0001f600"  # a character that the others lack
_SPECIAL: Final = ("\b", "\f", "\n", "\r", "\t", "\v", "\\", "\x01", "|", ",", ";", "~", "'", '"')
_DELIMITERS: Final = Weighted((3, None), (3, "\x01"), (1, "|"), (1, "~"))  # of text; the second is a control character
# Incomplete characters of the encodings of input. PostgreSQL refuses JOHAB whose second byte is ASCII.
_INVALID: Final = {
    "SJIS": b"\x81",
    "BIG5": b"\xa1",
    "GBK": b"\x81",
    "UHC": b"\x81",
    "GB18030": b"\x81",
    "UTF8": b"\xe8\xa1",
}
_WHOLE: Final = ("\\.", "", "\\N", "plain")


def encoded_output(rng: random.Random) -> Step:
    """Return a COPY TO of constants. It fails if the encoding lacks a character."""
    encoding = _ENCODINGS.pick(rng)
    strings = [_string(rng, _CHARACTERS[encoding]) for _ in range(between(rng, 1, 12))]
    lacking = encoding not in _COMPLETE and chance(rng, 15)
    strings += [f"a{_LACKING}"] if lacking else []
    listed = ", ".join(map(_literal, strings))
    columns = pick(rng, ("s", "n, s", "s, n"))
    query = f"SELECT {columns} FROM unnest(ARRAY[{listed}]) WITH ORDINALITY AS u (s, n) ORDER BY n"
    return Step(
        f"COPY ({query}) TO STDOUT{_options(rng, encoding).sql()}",
        Kind.COPY_OUT,
        ordered=True,
        may_fail=lacking,
        tags=("copy.out", "copy.out.lacking" if lacking else "copy.out.encoded"),
    )


def encoded_input(rng: random.Random) -> WrittenCopy:
    """Return lines in an encoding, perhaps with invalid bytes, or in an encoding without conversion.

    The data may end with the invalid bytes. COPY ignores them after an end marker.
    """
    encoding = pick(rng, (*_INVALID, "LATIN1"))
    lines = [*(pick(rng, _CHARACTERS[encoding]) * between(rng, 1, 9) for _ in range(between(rng, 1, 5)))]
    data = "\n".join(lines).encode(encoding)
    invalid = _INVALID.get(encoding, b"")  # each byte is valid in LATIN1
    other = pick(rng, (None, None, None, "SQL_ASCII", "MULE_INTERNAL"))
    if other:
        return WrittenCopy("one_text", f"ENCODING '{other}'", b"plain\n", "encoded", other == "MULE_INTERNAL")
    how = pick(rng, ("valid", "at the end", "before others", "ignored"))
    if how == "ignored":
        data += b"\n\\.\n" + invalid
    elif how != "valid":
        data += invalid + (b"\n" + b"more" * 9 if how == "before others" else b"")
    fails = bool(invalid) and how in ("at the end", "before others")
    return WrittenCopy("one_text", f"ENCODING '{encoding}'", data, "encoded", fails)


def client_encoded(rng: random.Random) -> tuple[Step, ...]:
    """Return COPYs in both directions without the option, so that the client's encoding counts."""
    encoding = pick(rng, ("SJIS", "LATIN1", "EUC_JP", "UHC"))
    characters = _CHARACTERS.get(encoding, _CHARACTERS["SJIS"])
    lines = "\n".join(pick(rng, characters) * between(rng, 1, 9) for _ in range(between(rng, 1, 5)))
    out = f"COPY (SELECT E'{''.join(map(_escaped, characters))}' AS s) TO STDOUT"
    options = pick(rng, ("", " WITH (FORMAT csv)"))
    copied = Step(
        f"COPY one_text FROM STDIN{options}", Kind.COPY_IN, copy_data=lines.encode(encoding), tags=("copy.of_client",)
    )
    return (
        Step(f"SET client_encoding = '{encoding}'"),
        copied,
        Step(out + options, Kind.COPY_OUT, ordered=True, tags=("copy.out", "copy.out.of_client")),
        Step("RESET client_encoding"),
        Step("SELECT length(s), md5(s) FROM one_text", Kind.QUERY),
    )


def _options(rng: random.Random, encoding: str) -> Options:
    form = LINE_FORMATS.pick(rng)
    delimiters = CSV_DELIMITERS if form is Format.CSV else _DELIMITERS
    options = Options(form, delimiter=delimiters.pick(rng), header=HEADERS_OUT.pick(rng), encoding=encoding)
    if form is Format.TEXT:
        return options
    forced = ("FORCE_QUOTE *",) if chance(rng, 20) else ()
    return replace(options, quote=QUOTES.pick(rng), escape=pick(rng, (None, "\\")), clauses=forced)


def _string(rng: random.Random, characters: str) -> str:
    if chance(rng, 25):
        return pick(rng, _WHOLE)
    if chance(rng, 5):
        return pick(rng, "\\|\x01") * between(rng, 500, 4000)  # an output buffer grows at an escape
    return "".join(pick(rng, characters if chance(rng, 50) else _SPECIAL) for _ in range(between(rng, 1, 7)))


def _literal(string: str) -> str:
    """Return an SQL literal in which characters other than letters are escapes."""
    return f"E'{''.join(map(_escaped, string))}'"


def _escaped(character: str) -> str:
    if character.isascii() and character.isalpha():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
