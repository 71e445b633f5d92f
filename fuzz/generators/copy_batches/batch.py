"""Batches of rows whose number and size in bytes are near the limits of copyfrom.c and resowner.c."""

import random
from itertools import cycle, islice

from fuzz.generators.choices import Weighted, between, chance, pick, some
from fuzz.generators.copy_batches.formats import Absent, Batch, Cell, Options, records
from fuzz.generators.copy_batches.table import REFERENCES, CopyColumn, CopyState, CopyTable, Family, Role
from fuzz.generators.copy_batches.values import int4, int4range, noise, text

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
KEY_ORDERS = Weighted((5, "turns"), (3, "runs"), (2, "skewed"), (1, "same"))
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
    *,
    spread: bool = False,
) -> Batch:
    """Return rows that the table accepts, numbered from `state.next_id`. With `spread`, keys alternate."""
    numbers = range(state.next_id, state.next_id + rows)
    padding = PAD_BUDGET * state.scale.rows // max(rows, 1)
    return Batch(columns, tuple(_cells(rng, table, column, numbers, padding, spread=spread) for column in columns))


def _cells(
    rng: random.Random, table: CopyTable, column: CopyColumn, numbers: range, padding: int, *, spread: bool
) -> tuple[Cell, ...]:
    if column.role is Role.ID:
        return tuple(int4(number) for number in numbers)
    if column.role is Role.SPAN:
        return tuple(int4range(number, number + 1) for number in numbers)
    if column.role is Role.KEY:
        return _keys(rng, table, len(numbers), "turns" if spread else KEY_ORDERS.pick(rng))
    return tuple(islice(cycle(_pool(rng, column, padding)), len(numbers)))


def _keys(rng: random.Random, table: CopyTable, rows: int, order: str) -> tuple[Cell, ...]:
    """Return partition keys: alternating ("turns"), in runs, skewed, or all equal ("same")."""
    keys: list[Cell] = [Absent.NULL if key is None else int4(key) for key in table.keys]
    if order == "runs":
        length = pick(rng, (2, 3, 7, 33))
        keys = [key for key in keys for _ in range(length)]
    elif order == "skewed":
        keys = [keys[0]] * (3 * len(keys)) + keys
    elif order == "same":
        keys = [pick(rng, keys)]
    else:
        start = rng.randrange(len(keys))
        keys = keys[start:] + keys[:start]
    return tuple(islice(cycle(keys), rows))


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
