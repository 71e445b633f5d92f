"""Leave out rows of what COPY FROM STDIN is sent: lines of text and CSV, tuples of the binary format."""

import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from fuzz.reduction.copy_text import LINES
from fuzz.reduction.deltas import shortest_in_parts
from fuzz.reduction.problem import Problem
from fuzz.reduction.steps import with_step

SIGNATURE = b"PGCOPY\n\xff\r\n\0"  # how binary COPY data begins; flags and the length of an extension follow


def shorten_copy_data(problem: Problem) -> None:
    """Find the rows that matter, step by step."""
    for position, step in enumerate(problem.best.all_steps):
        if step.copy_data:
            head, rows, tail = _rows(step.copy_data)
            shortest_in_parts(rows, partial(_still, problem, position, head, tail))


def _still(problem: Problem, position: int, head: bytes, tail: bytes, rows: tuple[bytes, ...]) -> bool:
    step = replace(problem.best.all_steps[position], copy_data=head + b"".join(rows) + tail)
    return problem.is_interesting(with_step(problem.best, position, step))


def _rows(data: bytes) -> tuple[bytes, Sequence[bytes], bytes]:
    """Return what stands before the rows, the rows, and what stands after them."""
    if not data.startswith(SIGNATURE):
        return b"", LINES.findall(data), b""
    try:
        return _binary_rows(data)
    except struct.error:  # broken on purpose: what cannot be read is left as it is
        return data, [], b""


def _binary_rows(data: bytes) -> tuple[bytes, list[bytes], bytes]:
    """Cut binary data into tuples. Raises struct.error where the data ends too soon."""
    (extension,) = struct.unpack_from("!i", data, len(SIGNATURE) + 4)
    first = start = len(SIGNATURE) + 8 + max(extension, 0)
    rows = []
    while (fields := struct.unpack_from("!h", data, start)[0]) >= 0:
        end = start + 2
        for _ in range(fields):
            (length,) = struct.unpack_from("!i", data, end)
            end += 4 + max(length, 0)  # -1 means NULL
        rows.append(data[start:end])
        start = end
    return data[:first], rows, data[start:]
