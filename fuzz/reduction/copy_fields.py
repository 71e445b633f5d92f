"""Fields of what COPY FROM STDIN is sent in text or CSV, as they stand, so that what stays of a line is what it was.

Binary data are one line of no fields.
"""

import re
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

from fuzz.reduction.copy_text import LINES


class Fields:
    """How the lines are cut into fields, by the options of a COPY."""

    def __init__(self, copy: Any) -> None:
        options = {option.defname: getattr(option.arg, "sval", "") for option in copy.options or ()}
        form = options.get("format", "text")
        self._binary = form == "binary"
        self._delimiter = (options.get("delimiter") or ("," if form == "csv" else "\t")).encode()
        apart = re.escape(self._delimiter)
        quote = re.escape((options.get("quote") or '"').encode())
        escape = re.escape((options.get("escape") or options.get("quote") or '"').encode())
        quoted = rb"%b(?:%b.|[^%b])*?%b(?!%b)" % (quote, escape, quote, quote, quote)
        field = rb"(?:%b|[^%b%b])*" % (quoted, apart, quote) if form == "csv" else rb"(?:\\.|[^\\%b])*" % apart
        self._field = re.compile(field, re.DOTALL)

    def changed(self, data: bytes, change: Callable[[list[bytes]], list[bytes]]) -> bytes:
        """Return the data with the fields of each line changed; a line that is none of the format stays."""
        return b"".join(
            self._delimiter.join(change(fields)) + end if fields else end for fields, end in self._lines(data)
        )

    def widths(self, data: bytes) -> list[int]:
        """Return the length of the longest field of each column."""
        lines = [map(len, fields) for fields, _ in self._lines(data)]
        return [max(lengths) for lengths in zip_longest(*lines, fillvalue=0)]

    def _lines(self, data: bytes) -> Iterator[tuple[list[bytes], bytes]]:
        """Yield the fields of each line, and what stands behind them: all of a line that is none of the format."""
        for line in [data] if self._binary else LINES.findall(data):
            text = line.rstrip(b"\r\n")
            fields = [] if self._binary else list(self._fields(text))
            yield (fields, line[len(text) :]) if self._delimiter.join(fields) == text else ([], line)

    def _fields(self, text: bytes) -> Iterator[bytes]:
        start = 0
        while match := self._field.match(text, start):
            yield match[0]
            if match.end() == len(text):
                return
            start = match.end() + len(self._delimiter)
