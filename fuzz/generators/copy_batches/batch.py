"""Batches of rows: how many, which values, and how many bytes, around the limits of copyfrom.c and resowner.c."""

import random
from itertools import cycle, islice

from fuzz.generators.choices import Weighted, between, chance, pick, some
from fuzz.generators.copy_batches.formats import Absent, Batch, Cell, Options, records
from fuzz.generators.copy_batches.table import REFERENCES, Column, Family, Role, Scope, Table
from fuzz.generators.copy_batches.values import int4, int4range, noise, text

BUFFERED_TUPLES = 1000  # MAX_BUFFERED_TUPLES
BUFFERED_BYTES = 65535  # MAX_BUFFERED_BYTES
LARGEST = 7  # a batch has at most this many times Scale.rows rows

# A resource owner's array holds 32 references; its hash of capacity c takes min(c - 32, 3/4 c), counted with the
# array: it grows at these numbers of references, of which a COPY has one for each row buffered, and a few more.
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
# References that a COPY has besides those of its rows. Measured on 17.11: 4 for a plain table, one more an index, about
# two more a partition; so owners grow that many rows before their limits.
ALLOWANCE = 12
PAD_LENGTHS = ((10, 0), (20, 1), (20, 12), (12, 60), (8, 250), (6, 1900), (5, 2100), (4, 9000), (1, 70000))
PAD_BUDGET = 500  # bytes of padding in a batch, more or less, for each row that Scale.rows allows in a table


def make_size(rng: random.Random, scope: Scope, table: Table) -> int:
    """Return a number of rows."""
    limit = LARGEST * scope.scale.rows
    if table.family is Family.VIEW or (table.slow and not chance(rng, 8)):
        limit = min(limit, 100)  # behind a view, each row is a statement, before and after which triggers may count
    base = Weighted(*(entry for entry in SIZES if entry[1] <= limit)).pick(rng)
    if base < OWNER_LIMITS[0]:
        return base
    low = 1 if base in (BUFFERED_TUPLES, 2 * BUFFERED_TUPLES) else ALLOWANCE
    return base + (pick(rng, (0, -1, 1)) if chance(rng, 40) else between(rng, -low, 2))


def spill_size(table: Table) -> int:
    """Return a number of rows that, with keys in turn, reaches each partition of a table."""
    hashed = len(table.keys) < table.leaves  # then chance alone leads to each partition
    return 7 * table.leaves if hashed else 2 * table.leaves + 5


def make_batch(
    rng: random.Random, scope: Scope, table: Table, columns: tuple[Column, ...], rows: int, *, spread: bool = False
) -> Batch:
    """Return rows that the table takes; their numbers start at scope.next_id. `spread` asks for keys in turn."""
    numbers = range(scope.next_id, scope.next_id + rows)
    padding = PAD_BUDGET * scope.scale.rows // max(rows, 1)
    return Batch(columns, tuple(_cells(rng, table, column, numbers, padding, spread=spread) for column in columns))


def _cells(
    rng: random.Random, table: Table, column: Column, numbers: range, padding: int, *, spread: bool
) -> tuple[Cell, ...]:
    if column.role is Role.ID:
        return tuple(int4(number) for number in numbers)
    if column.role is Role.SPAN:
        return tuple(int4range(number, number + 1) for number in numbers)
    if column.role is Role.KEY:
        return _keys(rng, table, len(numbers), "turns" if spread else KEY_ORDERS.pick(rng))
    return tuple(islice(cycle(_pool(rng, column, padding)), len(numbers)))


def _keys(rng: random.Random, table: Table, rows: int, order: str) -> tuple[Cell, ...]:
    """Return keys in turn (each row another partition), in runs, skewed, or all the same."""
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


def _pool(rng: random.Random, column: Column, padding: int) -> list[Cell]:
    """Return the few values that a column takes in turn; few, so that large batches are quickly made."""
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
    """Return a string, long and incompressible ones among them, of at most some bytes (at least 60)."""
    length = Weighted(*(entry for entry in PAD_LENGTHS if entry[1] <= max(longest, 60))).pick(rng)
    if chance(rng, 50):
        return noise(rng.randrange(1000), length)
    return text("p" * length)


def pad_to_bytes(batch: Batch, options: Options, first: int, total: int) -> Batch | None:
    """Return the batch with `pad` filled so that its first lines have `total` bytes, as COPY counts: no line ends.

    None if it has no `pad`, or if there is more already. Binary data has no lines, so COPY counts nothing.
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
