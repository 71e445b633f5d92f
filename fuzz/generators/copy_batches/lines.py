r"""Irregular lines of text and CSV: newlines of several styles, end markers, escapes, headers and markers.

An end marker is a line `\.`. COPY fails if a newline differs from those of the lines before.
"""

import random
from typing import Final

from fuzz.generators.choices import Weighted, between, chance, pick
from fuzz.generators.copy_batches.written import WrittenCopy

_LF, _CRLF, _CR = "\n", "\r\n", "\r"
_NONE = ""  # no line before
_NEWLINES: Final = (_LF, _CRLF, _CR)
_ANY: Final = (_NONE, *_NEWLINES)

# Ends of data, each with the newlines of the line before after which COPY fails. First those of both formats.
_END_MARKERS: Final = (
    ("\\.\n", (_CRLF, _CR)),
    ("\\.\r\n", (_LF,)),
    ("\\.\r", (_LF, _CRLF)),
    ("\\.\r\r", (_LF, _CRLF)),
    ("\\.\rx", (_LF, _CRLF)),
    ("\\.\nignored\r\\.", (_CRLF, _CR)),
)
_LAST_LINES: Final = (
    ("b\n", (_CRLF, _CR)),
    ("b\r", (_LF, _CRLF)),
    ("b\rc\n", (_LF, _CRLF, _CR, _NONE)),
    ("b\r\n", (_LF, _CR)),
    ("b", ()),
)
_TEXT_ENDS: Final = (
    *_END_MARKERS,
    ("\\.", _ANY),
    ("\\.x\n", _ANY),
    ("b\\.\n", (_CRLF, _CR)),
    ("b\\.\r\n", (_LF,)),
    *_LAST_LINES,
    ("b\\", ()),
    ("b\\\n", ()),
    ("b\\\r", ()),
    ("b\\\r\n", (_CRLF, _CR)),
)
_CSV_ENDS: Final = (
    *_END_MARKERS,
    ("\\.", ()),
    ("\\.x\n", (_CRLF, _CR)),
    ("b\\.\n", (_CRLF, _CR)),
    ("b\\.\r\n", (_LF, _CR)),
    *_LAST_LINES,
    ("\\", ()),
    ("b\\", ()),
    ('"b\r\nc\rd\ne"', ()),
    ('"b\r', _ANY),
)


def ends(rng: random.Random) -> WrittenCopy:
    """Return a few lines of one newline style, and an end that may be of another."""
    csv = chance(rng, 50)
    newline = pick(rng, _ANY)
    end, failing = pick(rng, _CSV_ENDS if csv else _TEXT_ENDS)
    before = f"a{newline}" * between(rng, 1, 2) if newline else ""
    options = "FORMAT csv" if csv else ""
    return WrittenCopy("one_text", options, (before + end).encode(), "ends", newline in failing)


# No escape begins with a digit or a letter that would continue the escape before it.
_ESCAPES: Final = (
    *(r"\b", r"\f", r"\n", r"\r", r"\t", r"\v", r"\\", r"\q", r"\1", r"\12", r"\101", r"\18", r"\1x", r"\12x"),
    *(r"\1-", r"\12-", r"\25", r"\36", r"\47", r"\50", r"\61", r"\72"),
    *(r"\x", r"\x4", r"\x4g", r"\x41", r"\xg", r"\xC3\xbc", r"\303\251", "plain", "\u00fc"),
)
_REFUSED_ESCAPES: Final = (r"\0", r"\x0", r"\377", r"\400", r"\303", r"\xc3")  # zero bytes, and incomplete characters


def escapes(rng: random.Random) -> WrittenCopy:
    """Return lines of escapes, also incomplete ones, and perhaps one that yields no character."""
    lines = [_escaped(rng) for _ in range(between(rng, 1, 4))]
    refused = chance(rng, 25)
    if refused:
        lines.append(_escaped(rng) + pick(rng, _REFUSED_ESCAPES) + _escaped(rng))
    newline = pick(rng, _NEWLINES)
    data = newline.join(lines) + (newline if chance(rng, 60) else "")
    return WrittenCopy("one_text", "", data.encode(), "escapes", refused)


def _escaped(rng: random.Random) -> str:
    return "".join(pick(rng, _ESCAPES) for _ in range(between(rng, 1, 5)))


_COMMAS: Final = {False: "DELIMITER ','", True: "FORMAT csv"}  # text and CSV with commas

# Header lines of the columns n and s. Only the first one matches.
_HEADERS: Final = Weighted(
    (6, ("n", "s")),
    (2, ("n",)),
    (2, ("n", "s", "x")),
    (2, ("s", "n")),
    (1, ("N", "s")),
    (2, ("<null>", "s")),
)
_AFTER_HEADER: Final = Weighted((2, "\n1,a\n"), (2, ""), (1, "\n"))


def headers(rng: random.Random) -> WrittenCopy:
    """Return data whose header line is right or wrong. COPY compares it only with HEADER match."""
    csv = chance(rng, 50)
    fields = _HEADERS.pick(rng)
    matching = chance(rng, 75)
    marker, failing = pick(rng, (("", False), ("", False), (", NULL 'n'", True), (", DEFAULT 's'", True)))
    null = "n" if "NULL" in marker else "" if csv else "\\N"
    data = ",".join(fields).replace("<null>", null) + _AFTER_HEADER.pick(rng)
    if chance(rng, 10):
        data, failing = "", True
    options = f"{_COMMAS[csv]}, HEADER {'match' if matching else 'true'}{marker}"
    wrong = failing or fields != ("n", "s")
    return WrittenCopy("two_columns", options, data.encode(), "headers", matching and wrong)


# Lines of the columns n and s with the DEFAULT marker `D`, and whether COPY fails, because no column has a default.
_MARKED: Final = (("1,D", True), ("D,a", True), ("1,a,D", True), ("1,DD", False), ("1,d", False))


def markers(rng: random.Random) -> WrittenCopy:
    """Return lines with the DEFAULT marker for columns without default, as a surplus field, and as part of a value."""
    csv = chance(rng, 50)
    line, fails = pick(rng, (*_MARKED, ('1,"D"', False)))
    return WrittenCopy("two_columns", f"{_COMMAS[csv]}, DEFAULT 'D'", f"0,a\n{line}\n".encode(), "markers", fails)
