"""Partition layouts: list, range and hash, several levels, default partitions, more partitions than COPY buffers."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from fuzz.generators.choices import Weighted, between, chance, pick, shuffled
from fuzz.generators.copy_batches.keys import KEPT_BUFFERS
from fuzz.generators.copy_batches.table import CopyColumn, CopyTable, Family
from fuzz.generators.sql.partitions import attached

MANY_PARTITIONS = KEPT_BUFFERS + 1


@dataclass(frozen=True, slots=True)
class Layout:
    """A partitioning: PARTITION BY clause, further statements, and keys of rows that have a partition."""

    by: str
    statements: tuple[str, ...]
    keys: tuple[int | None, ...]
    leaves: int
    takes_any_key: bool
    partitions: tuple[str, ...] = ()
    leaves_below: tuple[str, ...] = ()


def loop(count: int, statement: str, *others: str) -> str:
    """Return a DO block that runs a statement for each number from 0 to `count` - 1, which replaces `%1$s`.

    SQL expressions over that number `i` replace `%2$s` and so on.
    """
    values = ", ".join(("i", *others))
    return f"DO $$ BEGIN FOR i IN 0..{count - 1} LOOP EXECUTE format('{statement}', {values}); END LOOP; END $$"


def _children(table: CopyTable, count: int, bound: str, by: str = "") -> tuple[str, ...]:
    """Return statements that create `count` partitions. In `bound`, `%1$s` stands for the number of the partition."""
    clause = f" PARTITION BY {by}" if by else ""
    statement = f"{table.create} {table.name}_%1$s PARTITION OF {table.name} {bound}{clause}"
    if count > 4:
        return (loop(count, statement),)
    return tuple(statement.replace("%1$s", str(number)) for number in range(count))


def _default(table: CopyTable) -> str:
    return f"{table.create} {table.name}_d PARTITION OF {table.name} DEFAULT"


def _names(table: CopyTable, count: int) -> tuple[str, ...]:
    return tuple(f"{table.name}_{number}" for number in range(count))


def make_list(rng: random.Random, table: CopyTable, count: int) -> Layout:
    """Return one list partition per key, and perhaps a default partition, which accepts NULL."""
    other = chance(rng, 50)
    statements = _children(table, count, "FOR VALUES IN (%1$s)")
    keys: tuple[int | None, ...] = tuple(range(count))
    if other:
        statements, keys = (*statements, _default(table)), (*keys, count + 7, None)
    return Layout("LIST (k)", statements, keys, count + other, other, _names(table, count))


def make_range(rng: random.Random, table: CopyTable, count: int) -> Layout:
    """Return range partitions of nine keys each, and perhaps a default partition."""
    other = chance(rng, 60)
    # The first or the last partition contains 0: code that does not test for NULL compares a NULL key as 0.
    least = pick(rng, (0, 10 - 10 * count))
    # The key 9 of each ten, counted from `least`, is in the default partition, or refused.
    statements = _children(table, count, f"FOR VALUES FROM ({least} + %1$s0) TO ({least} + %1$s9)")
    keys: tuple[int | None, ...] = tuple(least + 10 * number + rng.randrange(9) for number in range(count))
    if other:
        statements, keys = (*statements, _default(table)), (*keys, None, least - 5, 9)
    return Layout("RANGE (k)", statements, keys, count + other, other, _names(table, count))


def make_hash(rng: random.Random, table: CopyTable, count: int) -> Layout:
    """Return hash partitions of `id`, which accept any key."""
    statements = _children(table, count, f"FOR VALUES WITH (MODULUS {count}, REMAINDER %1$s)")
    return Layout(
        "HASH (id)", statements, (rng.randrange(9), 3, None), count, takes_any_key=True, partitions=_names(table, count)
    )


def make_levels(rng: random.Random, table: CopyTable, count: int) -> Layout:
    """Return list partitions, each split by hash of `id`, and a default partition split by range of `id`."""
    width, splits = max(1, count // 2), 2
    of = f"{table.create} {table.name}"
    statements = _children(table, width, "FOR VALUES IN (%1$s)", "HASH (id)")
    for remainder in range(splits):
        leaf = f"{of}_%1$s_{remainder} PARTITION OF {table.name}_%1$s"
        statements += (loop(width, f"{leaf} FOR VALUES WITH (MODULUS {splits}, REMAINDER {remainder})"),)
    split = 20 * between(rng, 1, 9)
    statements += (
        f"{of}_d PARTITION OF {table.name} DEFAULT PARTITION BY RANGE (id)",
        f"{of}_d_0 PARTITION OF {table.name}_d FOR VALUES FROM (MINVALUE) TO ({split})",
        f"{of}_d_1 PARTITION OF {table.name}_d FOR VALUES FROM ({split}) TO (MAXVALUE)",
    )
    keys = (*range(width), 100, None)
    return Layout("LIST (k)", statements, keys, width * splits + 2, takes_any_key=True)


def make_branches(rng: random.Random, table: CopyTable, count: int) -> Layout:
    """Return list partitions of the key below range partitions of it, and perhaps a default partition."""
    of, width = f"{table.create} {table.name}", pick(rng, (1, 5, 12, 20))
    branches = -(-count // width)
    branch = f"{of}_b%1$s PARTITION OF {table.name} FOR VALUES FROM (%2$s) TO (%3$s) PARTITION BY LIST (k)"
    leaf = f"{of}_%1$s PARTITION OF {table.name}_b%2$s FOR VALUES IN (%1$s)"
    statements: tuple[str, ...] = (
        loop(branches, branch, f"i * {width}", f"(i + 1) * {width}"),
        loop(count, leaf, f"i / {width}"),
    )
    keys: tuple[int | None, ...] = tuple(range(count))
    other = chance(rng, 50)
    if other:
        statements, keys = (*statements, _default(table)), (*keys, None, -1)
    return Layout("RANGE (k)", statements, keys, count + other, other, leaves_below=_names(table, count))


def make_deep(rng: random.Random, table: CopyTable, count: int) -> Layout:
    """Return four levels of partitions, with an additional leaf on each level."""
    of, name = f"{table.create} {table.name}", table.name
    statements = (
        f"{of}_0 PARTITION OF {name} FOR VALUES FROM (0) TO (100) PARTITION BY LIST (k)",
        f"{of}_0_0 PARTITION OF {name}_0 FOR VALUES IN (0, 1, 2, 3) PARTITION BY HASH (id)",
        f"{of}_0_d PARTITION OF {name}_0 DEFAULT",
        f"{of}_0_0_0 PARTITION OF {name}_0_0 FOR VALUES WITH (MODULUS 2, REMAINDER 0) PARTITION BY RANGE (id)",
        f"{of}_0_0_1 PARTITION OF {name}_0_0 FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
        f"{of}_0_0_0_0 PARTITION OF {name}_0_0_0 FOR VALUES FROM (MINVALUE) TO ({between(rng, 5, 99)})",
        f"{of}_0_0_0_d PARTITION OF {name}_0_0_0 DEFAULT",
        f"{of}_1 PARTITION OF {name} FOR VALUES FROM (100) TO (200)",
    )
    keys = (0, 1, 2, 3, 50, *range(100, 100 + count))
    return Layout("RANGE (k)", statements, keys, 5, takes_any_key=False, partitions=(f"{name}_1",))


def make_attached(rng: random.Random, table: CopyTable, count: int) -> Layout:
    """Return list partitions created separately and attached, with another order of columns and a dropped column."""
    statements: tuple[str, ...] = ()
    for child in _names(table, min(count, 4)):
        columns = [_attachable(column) for column in table.columns]
        columns = list(shuffled(rng, columns))
        columns.insert(rng.randrange(len(columns) + 1), "gone int8")
        key = child.rsplit("_", 1)[1]
        create = f"{table.create} {child} ({', '.join(columns)})"
        statements += attached(create, child, table.name, f"FOR VALUES IN ({key})")
    keys = tuple(range(min(count, 4)))
    return Layout("LIST (k)", statements, keys, len(keys), takes_any_key=False, partitions=_names(table, len(keys)))


def _attachable(column: CopyColumn) -> str:
    """Return a column definition that ATTACH accepts. The identity property comes from the parent."""
    if "IDENTITY" in column.suffix:
        column = replace(column, suffix="", nullable=False)
    return column.definition


LAYOUTS: Weighted[Callable[[random.Random, CopyTable, int], Layout]] = Weighted(
    (6, make_list),
    (5, make_range),
    (3, make_hash),
    (3, make_levels),
    (2, make_deep),
    (3, make_attached),
    (2, make_branches),
)


# With hash partitions, the keys of rows do not decide which buffers are in use.
MANY_LAYOUTS: Weighted[Callable[[random.Random, CopyTable, int], Layout]] = Weighted(
    (3, make_list), (3, make_range), (3, make_branches), (1, make_hash)
)


def make_partitioned(rng: random.Random, table: CopyTable, limit: int) -> tuple[CopyTable, str, tuple[str, ...]]:
    """Return the table as partitioned, its PARTITION BY clause, and the statements that create its partitions.

    `limit` is the usual maximum of direct partitions. Sometimes the table has more partitions than COPY has buffers. It
    mostly has one more, because creating a partition takes as long as filling it.
    """
    many = chance(rng, 38) and 4 * limit > MANY_PARTITIONS
    most = MANY_PARTITIONS if chance(rng, 70) else min(4 * limit, MANY_PARTITIONS + 9)
    count = between(rng, MANY_PARTITIONS, most) if many else between(rng, 1, max(1, min(limit, 6)))
    make = MANY_LAYOUTS.pick(rng) if many else LAYOUTS.pick(rng)
    layout = make(rng, table, count)
    made = replace(
        table,
        family=Family.PARTITIONED,
        keys=layout.keys,
        leaves=layout.leaves,
        takes_any_key=layout.takes_any_key,
        partitions=layout.partitions,
        leaves_below=layout.leaves_below,
    )
    return made, f" PARTITION BY {layout.by}", layout.statements
