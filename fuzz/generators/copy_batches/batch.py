"""Batches of rows, valid ones and those that COPY must refuse.

Number and size in bytes of a batch are near the limits of copyfrom.c and resowner.c. Each kind of mistake is a small
change to a valid batch.
"""

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import cycle, islice

from fuzz.generators.choices import Weighted, between, chance, pick, some
from fuzz.generators.copy_batches.formats import SIGNATURE, TRAILER, Absent, Batch, Cell, Format, Options, records
from fuzz.generators.copy_batches.keys import ORDERS, make_keys
from fuzz.generators.copy_batches.table import (
    BAD_KEY,
    BAD_REFERENCE,
    BOOM_KEY,
    REFERENCES,
    CopyColumn,
    CopyState,
    CopyTable,
    Family,
    Role,
)
from fuzz.generators.copy_batches.values import Value, int4, int4range, noise, text

BUFFERED_TUPLES = 1000  # MAX_BUFFERED_TUPLES of copyfrom.c
BUFFERED_BYTES = 65535  # MAX_BUFFERED_BYTES of copyfrom.c
LARGEST = 7  # upper bound of a batch's rows, as a multiple of Scale.rows

# Numbers of references at which a resource owner grows. Its array holds 32 references, and a hash table of capacity c
# holds min(c - 32, 3/4 c) more. A COPY has one reference per buffered row, and a few others.
OWNER_LIMITS = (32, 64, 96, 192, 384, 768)
SIZES = (
    (2, 0),
    (8, 1),
    (5, 2),
    (10, 5),
    (18, 32),
    (6, 48),
    (9, 64),
    (9, 96),
    (5, 192),
    (2, 384),
    (1, 768),
    (3, BUFFERED_TUPLES),
    (1, 1536),
    (1, 2 * BUFFERED_TUPLES),
)
# Upper bound of a COPY's references other than those of its rows. An owner grows up to that many rows earlier than its
# limit.
#
# Measured on 17.11: 4 for a plain table, one per index, and about two per partition.
ALLOWANCE = 12
PAD_LENGTHS = ((10, 0), (20, 1), (20, 12), (12, 60), (8, 250), (6, 1900), (5, 2100), (4, 9000), (1, 70000))
PAD_BUDGET = 500  # approximate bytes of padding in a batch, per row of Scale.rows


def make_size(rng: random.Random, state: CopyState, table: CopyTable) -> int:
    """Return a number of rows for a batch."""
    limit = LARGEST * state.scale.rows
    if table.family is Family.VIEW or (table.slow and not chance(rng, 8)):
        # Each row of a view is a statement of its own. Statement triggers may count the table before and after it.
        limit = min(limit, 100)
    base = Weighted(*(entry for entry in SIZES if entry[1] <= limit)).pick(rng)
    if base < OWNER_LIMITS[0]:
        return base
    low = 1 if base in (BUFFERED_TUPLES, 2 * BUFFERED_TUPLES) else ALLOWANCE
    return base + (pick(rng, (0, -1, 1)) if chance(rng, 40) else between(rng, -low, 2))


def spill_size(table: CopyTable) -> int:
    """Return a number of rows that reaches each partition of a table if keys alternate."""
    hashed = len(table.keys) < table.leaves  # rows are then distributed by hash, not by key
    return 7 * table.leaves if hashed else 2 * table.leaves + 5


def make_batch(
    rng: random.Random,
    state: CopyState,
    table: CopyTable,
    columns: tuple[CopyColumn, ...],
    rows: int,
    keys: tuple[Cell, ...] | None = None,
) -> Batch:
    """Return rows that the table accepts, numbered from `state.next_id`, perhaps with given partition keys."""
    numbers = range(state.next_id, state.next_id + rows)
    padding = PAD_BUDGET * state.scale.rows // max(rows, 1)
    return Batch(columns, tuple(_cells(rng, table, column, numbers, padding, keys) for column in columns))


def _cells(
    rng: random.Random,
    table: CopyTable,
    column: CopyColumn,
    numbers: range,
    padding: int,
    keys: tuple[Cell, ...] | None,
) -> tuple[Cell, ...]:
    if column.role is Role.ID:
        return tuple(int4(number) for number in numbers)
    if column.role is Role.SPAN:
        return tuple(int4range(number, number + 1) for number in numbers)
    if column.role is Role.KEY:
        return keys or make_keys(rng, table.keys, len(numbers), ORDERS.pick(rng))
    return tuple(islice(cycle(_pool(rng, column, padding)), len(numbers)))


def _pool(rng: random.Random, column: CopyColumn, padding: int) -> list[Cell]:
    """Return the values that a column repeats. There are few, so that large batches are generated fast."""
    if column.role is Role.REFERENCE:
        pool: list[Cell] = [int4(number) for number in some(rng, range(1, REFERENCES + 1), 2)]
    elif column.role is Role.PAD:
        pool = [make_pad(rng, padding) for _ in range(between(rng, 1, 3))]
    else:
        pool = [column.type.draw(rng) for _ in range(between(rng, 1, 4))]
    if column.nullable and chance(rng, 50):
        pool.append(Absent.NULL)
    return pool


def make_pad(rng: random.Random, longest: int) -> Cell:
    """Return a string, possibly incompressible, of at most `longest` bytes (or 60 if that is more)."""
    length = Weighted(*(entry for entry in PAD_LENGTHS if entry[1] <= max(longest, 60))).pick(rng)
    if chance(rng, 50):
        return noise(rng.randrange(1000), length)
    return text("p" * length)


def pad_to_bytes(batch: Batch, options: Options, first: int, total: int) -> Batch | None:
    """Return the batch with `pad` extended, so that its first `first` lines have `total` bytes in all.

    COPY does not count line ends. Return None without a column `pad`, or if the lines are longer already. The binary
    format has no lines, so COPY counts no bytes.
    """
    if all(column.role is not Role.PAD for column in batch.columns) or not 0 < first <= batch.rows:
        return None
    short = text("p")
    bare = batch.with_column("pad", [short] * batch.rows)
    missing = total - sum(len(line) for line in records(bare, options)[:first])
    if missing < 0:
        return None
    share, rest = divmod(missing, first)
    usual, last = text("p" * (1 + share)), text("p" * (1 + share + rest))
    return bare.with_column("pad", [usual] * (first - 1) + [last] + [short] * (batch.rows - first))


LINES = frozenset({Format.TEXT, Format.CSV})
BINARY = frozenset({Format.BINARY})
EVERY = LINES | BINARY


@dataclass(frozen=True, slots=True)
class Target:
    """The input of a mistake: the table, the batch, and the options of its format."""

    table: CopyTable
    batch: Batch
    options: Options

    def has(self, name: str) -> bool:
        """Return whether the batch has the column."""
        return any(column.name == name for column in self.batch.columns)

    def refuses(self, kind: str) -> bool:
        """Return whether the table refuses rows of that kind, immediately or at the end of the transaction."""
        return kind in self.table.checked or kind in self.table.deferred


@dataclass(frozen=True, slots=True)
class Mistake:
    """A kind of mistake: its precondition, and its change to cells, to one formatted row, or to the whole stream."""

    name: str
    formats: frozenset[Format]
    fits: Callable[[Target], bool]
    spoil_cells: Callable[[Target, int], Batch] | None = None
    spoil_row: Callable[[bytes, Options], bytes] | None = None
    spoil_stream: Callable[[bytes], bytes] | None = None
    kind: str = ""  # of CopyTable.checked or CopyTable.deferred, if a constraint or trigger refuses the row

    def deferred(self, table: CopyTable) -> bool:
        """Return whether the error is raised only at the end of the transaction."""
        return self.kind in table.deferred and self.kind not in table.checked


def _rows(target: Target) -> bool:
    return target.batch.rows > 0


def _in_column(name: str, cell: Cell) -> Callable[[Target, int], Batch]:
    return lambda target, row: target.batch.with_cell(name, row, cell)


def _refuses(kind: str, column: str, rows: int = 1) -> Callable[[Target], bool]:
    """Return a precondition: the table refuses the kind, its triggers skip no rows, and the batch has enough rows."""

    def fits(target: Target) -> bool:
        enough = target.batch.rows >= rows and target.has(column)
        return enough and target.refuses(kind) and not target.table.skips_rows

    return fits


def _fits_no_partition(target: Target) -> bool:
    return _rows(target) and not target.table.takes_any_key and not target.table.skips_rows


def _trigger_raises(target: Target) -> bool:
    return _refuses("raise", "k")(target) and target.table.takes_any_key


def _refusable(batch: Batch) -> list[tuple[str, str]]:
    return [(column.name, column.type.bad) for column in batch.columns if column.type.bad is not None]


def _misspelt(target: Target, row: int) -> Batch:
    candidates = _refusable(target.batch)
    name, bad = candidates[row % len(candidates)]
    return target.batch.with_cell(name, row, Value(bad, b""))


def _neighbour(row: int) -> int:
    return row - 1 if row else 1


def _twice(target: Target, row: int) -> Batch:
    """Return the batch with a duplicate: the row's number equals its neighbor's, and both have the same key.

    The key must not be NULL, because unique constraints permit NULLs.
    """
    keys = [int4(key) for key in target.table.keys if key is not None]
    batch, other = target.batch, _neighbour(row)
    for name, cell in (("id", batch.cells[batch.position("id")][other]), ("k", keys[0])):
        batch = batch.with_cell(name, row, cell)
    return batch.with_cell("k", other, keys[0])


def _overlapping(target: Target, row: int) -> Batch:
    spans = target.batch.cells[target.batch.position("span")]
    return target.batch.with_cell("span", row, spans[_neighbour(row)])


def _bad_utf8(target: Target, row: int) -> Batch:
    return target.batch.with_cell("pad", row, Value("", b"ab\xff"))


def _wrong_length(target: Target, row: int) -> Batch:
    return target.batch.with_cell("id", row, Value("", b"\x00\x00\x07"))


def _shortened(line: bytes, options: Options) -> bytes:
    return b"1"


def _lengthened(line: bytes, options: Options) -> bytes:
    return line + options.field_delimiter.encode() + b"1"


def _unclosed(line: bytes, options: Options) -> bytes:
    return (options.quote or '"').encode() + line


def _utf8(target: Target) -> bool:
    return _rows(target) and target.options.encoding in (None, "UTF8")


def _binary_pad(target: Target) -> bool:
    return _rows(target) and target.has("pad")


MISTAKES: tuple[tuple[int, Mistake], ...] = (
    (9, Mistake("syntax", LINES, lambda t: _rows(t) and bool(_refusable(t.batch)), _misspelt)),
    (3, Mistake("null", EVERY, lambda t: _rows(t) and not t.table.skips_rows, _in_column("id", Absent.NULL))),
    (10, Mistake("check", EVERY, _refuses("check", "k"), _in_column("k", int4(BAD_KEY)), kind="check")),
    (12, Mistake("no_partition", EVERY, _fits_no_partition, _in_column("k", int4(BAD_KEY)))),
    (16, Mistake("unique", EVERY, _refuses("unique", "k", rows=2), _twice, kind="unique")),
    (
        16,
        Mistake("reference", EVERY, _refuses("reference", "r"), _in_column("r", int4(BAD_REFERENCE)), kind="reference"),
    ),
    (30, Mistake("exclusion", EVERY, _refuses("exclusion", "span", rows=2), _overlapping, kind="exclusion")),
    (30, Mistake("raise", EVERY, _trigger_raises, _in_column("k", int4(BOOM_KEY)), kind="raise")),
    (4, Mistake("missing_column", LINES, _rows, spoil_row=_shortened)),
    (4, Mistake("surplus_column", LINES, _rows, spoil_row=_lengthened)),
    (4, Mistake("encoding", LINES, _utf8, spoil_row=lambda line, options: line + b"\xff\xfe")),
    (2, Mistake("escape", frozenset({Format.TEXT}), _rows, spoil_row=lambda line, options: line + b"\\303")),
    (2, Mistake("zero_byte", LINES, _rows, spoil_row=lambda line, options: b"\x00" + line)),
    (2, Mistake("end_marker", frozenset({Format.TEXT}), _rows, spoil_row=lambda line, options: b"\\." + line)),
    (3, Mistake("field_count", BINARY, _rows, spoil_row=lambda row, options: b"\x00\x63" + row[2:])),
    (
        2,
        Mistake(
            "field_length", BINARY, _rows, spoil_row=lambda row, options: row[:2] + struct.pack("!i", -7) + row[6:]
        ),
    ),
    (3, Mistake("encoding", BINARY, _binary_pad, _bad_utf8)),
    (3, Mistake("length", BINARY, _rows, _wrong_length)),
    (4, Mistake("truncated", BINARY, _rows, spoil_stream=lambda data: data.removesuffix(TRAILER)[:-3])),
    (1, Mistake("signature", BINARY, lambda t: True, spoil_stream=lambda data: b"PGCOPX" + data[6:])),
    (1, Mistake("flags", BINARY, lambda t: True, spoil_stream=lambda data: data[:11] + b"\x00\x02" + data[13:])),
    (1, Mistake("header_cut", BINARY, lambda t: True, spoil_stream=lambda data: SIGNATURE + b"\x00")),
    (2, Mistake("surplus", BINARY, lambda t: t.options.closed, spoil_stream=lambda data: data + b"more")),
    (2, Mistake("quote", frozenset({Format.CSV}), _rows, spoil_row=_unclosed)),
)


def mistakes_for(target: Target, *, deferred: bool = False) -> list[tuple[int, Mistake]]:
    """Return the weighted mistakes that fit and raise immediate errors, or if `deferred`, errors at commit."""
    return [
        (weight, mistake)
        for weight, mistake in MISTAKES
        if target.options.format in mistake.formats
        and mistake.fits(target)
        and mistake.deferred(target.table) == deferred
    ]


def misspell(target: Target, rng: random.Random, count: int) -> Batch:
    """Return the batch with invalid values in up to `count` rows, which ON_ERROR ignore skips."""
    batch = target.batch
    for _ in range(count):
        batch = _misspelt(replace(target, batch=batch), rng.randrange(batch.rows))
    return batch
