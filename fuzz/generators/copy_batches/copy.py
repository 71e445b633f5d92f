"""COPY steps in both directions.

COPY FROM STDIN is valid, or has one deliberate mistake. COPY TO STDOUT is that of a table, some of its columns, a
query, a partition, or a change with RETURNING.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from fuzz.generators.choices import Weighted, between, chance, pick, shuffled, some
from fuzz.generators.copy_batches.batch import (
    ALLOWANCE,
    BUFFERED_BYTES,
    BUFFERED_TUPLES,
    LARGEST,
    LINES,
    OWNER_LIMITS,
    Mistake,
    Target,
    make_batch,
    make_size,
    misspell,
    mistakes_for,
    pad_to_bytes,
    spill_size,
)
from fuzz.generators.copy_batches.changes import make_returning
from fuzz.generators.copy_batches.formats import (
    Batch,
    Options,
    make_options,
    make_output_options,
    records,
    stream,
    with_defaults,
)
from fuzz.generators.copy_batches.keys import KEPT_BUFFERS, cells, make_keys, make_return
from fuzz.generators.copy_batches.partitions import MANY_PARTITIONS
from fuzz.generators.copy_batches.table import CopyColumn, CopyState, CopyTable, Family, Role
from oracles.model.case import Kind, Step

MORE = (0, 1, 5, 40, 40)  # rows after those that fill the buffers
RETURN_TAGS = ("copy.partition_return",)
WHERES = ("id % 3 <> 1", "id > 0", "k IS NOT NULL OR id % 2 = 0", "length(pad) < 100", "false", "volatile_keep(id)")


@dataclass(frozen=True, slots=True)
class Requirements:
    """Requirements for a COPY. None and False leave the choice to chance or to the table."""

    rows: int | None = None
    mistaken: bool = False
    deferred: bool = False  # the mistake must raise its error at the end of the transaction
    freeze: bool = False
    returning: bool = False  # rows go to many partitions in turn and then to one of them


NO_REQUIREMENTS = Requirements()


@dataclass(frozen=True, slots=True)
class Draft:
    """A COPY before its data is formatted."""

    table: CopyTable
    batch: Batch
    options: Options
    listed: bool  # whether the statement has a column list
    where: str = ""
    tags: tuple[str, ...] = ()


def make_copy(
    rng: random.Random, state: CopyState, table: CopyTable, required: Requirements = NO_REQUIREMENTS
) -> tuple[Step, CopyState]:
    """Return a COPY into the table, and the state after it.

    If a mistake is required but none fits, the COPY is valid, and `may_fail` of the step is false.
    """
    draft = _draft(rng, state, table, required)
    after = state.after_rows(draft.batch.rows)
    if required.mistaken or required.deferred:
        target = Target(table, draft.batch, draft.options)
        if found := mistakes_for(target, deferred=required.deferred):
            return _write(draft, Weighted(*found).pick(rng), _place(rng, draft.batch.rows)), after
    return _write(_varied(rng, draft)), after


def has_many_keys(table: CopyTable) -> bool:
    """Return whether rows of the table's keys go to more partitions than COPY keeps buffers."""
    return table.family is Family.PARTITIONED and min(table.leaves, len(table.keys)) > KEPT_BUFFERS


def _draft(rng: random.Random, state: CopyState, table: CopyTable, required: Requirements) -> Draft:
    columns, listed = _column_list(rng, table)
    many = table.family is Family.PARTITIONED and table.leaves >= MANY_PARTITIONS
    free = required.rows is None and not required.freeze
    if required.returning or (free and has_many_keys(table) and chance(rng, 40)):
        return _draft_of_return(rng, state, table, columns, listed=listed)
    if free and not table.slow and chance(rng, 30 if many else 5):
        return _draft_by_bytes(rng, state, table, columns, listed=listed)
    spread = many and required.rows is None and chance(rng, 80)
    rows = spill_size(table) if spread else make_size(rng, state, table) if required.rows is None else required.rows
    keys = make_keys(rng, table.keys, rows, "turns") if spread else None
    batch = make_batch(rng, state, table, columns, rows, keys)
    options = make_options(rng, batch)
    if required.freeze:
        options = replace(options, clauses=("FREEZE",))
    spill = ("copy.partition_spill",) if spread else ()
    return Draft(table, batch, options, listed, tags=(*_size_tags(rows), *spill))


def _draft_by_bytes(
    rng: random.Random, state: CopyState, table: CopyTable, columns: tuple[CopyColumn, ...], *, listed: bool
) -> Draft:
    """Return a COPY whose first rows have as many bytes as COPY buffers, one byte more, or one less.

    More rows may follow.
    """
    many = table.leaves >= MANY_PARTITIONS
    # The keys' turns start again at the first of the partitions, whose buffer is the oldest one when it is in use.
    again = (spill_size(table), 2 * len(table.keys) + 1)
    first = pick(rng, again if many else (1, 2, 33, 64, 48))
    rows = min(first + pick(rng, MORE), LARGEST * state.scale.rows)
    keys = make_keys(rng, table.keys, rows, "turns") if many else None
    batch = make_batch(rng, state, table, columns, rows, keys)
    return _filled(rng, Draft(table, batch, make_options(rng, batch), listed), min(first, rows))


def _draft_of_return(
    rng: random.Random, state: CopyState, table: CopyTable, columns: tuple[CopyColumn, ...], *, listed: bool
) -> Draft:
    """Return a COPY into many partitions in turn and then into one of them, during whose rows the buffers are full.

    So COPY drops buffers while that one is in use. It is the oldest, the newest, or another one.
    """
    limit = LARGEST * state.scale.rows
    by_rows = not table.slow and limit > BUFFERED_TUPLES
    if by_rows and chance(rng, 40):
        return _draft_of_rounds(rng, state, table, columns, listed=listed)
    way = make_return(rng, table.keys)
    first = len(way.turn) + between(rng, 1, 4)
    keys = way.keys(first - len(way.turn) + pick(rng, MORE))
    keys += make_return(rng, table.keys).keys(pick(rng, MORE)) if chance(rng, 30) else ()
    rows = min(len(keys), limit)
    batch = make_batch(rng, state, table, columns, rows, cells(keys, rows))
    filled = _filled(rng, Draft(table, batch, make_options(rng, batch), listed, tags=RETURN_TAGS), min(first, rows))
    if by_rows and filled.batch is batch:  # which has too few rows, and no padding
        return _draft_of_rounds(rng, state, table, columns, listed=listed)
    return filled


def _draft_of_rounds(
    rng: random.Random, state: CopyState, table: CopyTable, columns: tuple[CopyColumn, ...], *, listed: bool
) -> Draft:
    """Return a COPY as `_draft_of_return` does, with as many rows as the buffers hold, once or twice, and some more."""
    twice = LARGEST * state.scale.rows > 2 * BUFFERED_TUPLES and chance(rng, 20)
    keys: tuple[int | None, ...] = ()
    for _ in range(2 if twice else 1):
        way = make_return(rng, table.keys)
        keys += way.keys(BUFFERED_TUPLES - len(way.turn))
    keys += keys[-1:] * pick(rng, MORE)
    batch = make_batch(rng, state, table, columns, len(keys), cells(keys, len(keys)))
    return Draft(table, batch, make_options(rng, batch), listed, tags=RETURN_TAGS)


def _filled(rng: random.Random, draft: Draft, first: int) -> Draft:
    """Return the COPY with padding, so that its first rows fill the buffers, or lack a byte, or have one more."""
    options = replace(draft.options, encoding=None)
    total = BUFFERED_BYTES + pick(rng, (0, -1, 1))
    padded = pad_to_bytes(draft.batch, options, first, total) if options.format in LINES else None
    if padded is None:
        return replace(draft, options=options, tags=(*draft.tags, *_size_tags(draft.batch.rows)))
    return replace(draft, batch=padded, options=options, tags=(*draft.tags, "copy.byte_boundary"))


def _column_list(rng: random.Random, table: CopyTable) -> tuple[tuple[CopyColumn, ...], bool]:
    """Return the columns to send, and whether the statement needs a column list."""
    if not chance(rng, 35):
        return table.copied, False
    kept = [column for column in table.copied if column.required or column.role is Role.KEY or chance(rng, 60)]
    if chance(rng, 60):
        kept = list(shuffled(rng, kept))
    if len(kept) < 2:
        return table.copied, False
    return tuple(kept), True


def _varied(rng: random.Random, draft: Draft) -> Draft:
    """Return the valid COPY, sometimes with WHERE, DEFAULT or ON_ERROR."""
    tags = draft.tags
    where = pick(rng, WHERES) if chance(rng, 18) else ""
    if "pad" in where and not any(column.name == "pad" for column in draft.batch.columns):
        where = ""
    batch, options = with_defaults(rng, draft.batch, draft.options)
    if where:
        tags += ("copy.where",)
    target = Target(draft.table, batch, options)
    if options.format in LINES and batch.rows and chance(rng, 25):
        verbosity = pick(rng, ((), (), ("LOG_VERBOSITY verbose",)))
        options = replace(options, clauses=(*options.clauses, "ON_ERROR ignore", *verbosity))
        batch = misspell(target, rng, pick(rng, (0, 1, 3)))
        tags += ("copy.on_error",)
    return replace(draft, batch=batch, options=options, where=where, tags=tags)


def _place(rng: random.Random, rows: int) -> tuple[str, int]:
    if rows < 2:
        return "first", 0
    return pick(rng, (("first", 0), ("middle", rows // 2), ("middle", rng.randrange(rows)), ("last", rows - 1)))


def _write(draft: Draft, mistake: Mistake | None = None, place: tuple[str, int] = ("", 0)) -> Step:
    """Return the COPY as a step, with the mistake in the row of `place`."""
    where, row = place
    batch, options = draft.batch, draft.options
    if mistake and mistake.spoil_cells:
        batch = mistake.spoil_cells(Target(draft.table, batch, options), row)
    written = records(batch, options)
    if mistake and mistake.spoil_row:
        written[row] = mistake.spoil_row(written[row], options)
    data = stream(written, batch, options)
    if mistake and mistake.spoil_stream:
        data = mistake.spoil_stream(data)
    names = f" ({', '.join(column.name for column in batch.columns)})" if draft.listed else ""
    condition = f" WHERE {draft.where}" if draft.where else ""
    tags = ("copy", f"copy.{options.format}", *draft.tags, *_option_tags(draft), *_table_tags(draft))
    if mistake:
        tags += (f"copy.error.{where}", f"copy.mistake.{mistake.name}")
    return Step(
        f"COPY {draft.table.name}{names} FROM STDIN{options.sql()}{condition}",
        Kind.COPY_IN,
        copy_data=data,
        may_fail=mistake is not None,
        tags=tags,
    )


def _size_tags(rows: int) -> tuple[str, ...]:
    tags = []
    if any(abs(rows - limit) <= 1 for limit in (BUFFERED_TUPLES, 2 * BUFFERED_TUPLES)):
        tags.append("copy.tuple_boundary")
    if any(limit - ALLOWANCE <= rows <= limit + 2 for limit in OWNER_LIMITS):
        tags.append("copy.owner_boundary")
    return tuple(tags)


def _option_tags(draft: Draft) -> tuple[str, ...]:
    options = draft.options
    tags = (
        (bool(options.header), f"copy.header_{options.header}"),
        (options.default is not None, "copy.default_marker"),
        (bool(options.force_null or options.force_not_null), "copy.force_null"),
        (options.encoding is not None, "copy.encoding"),
        ("FREEZE" in options.clauses, "copy.freeze"),
        (draft.listed, "copy.column_list"),
    )
    return tuple(tag for applies, tag in tags if applies)


def _table_tags(draft: Draft) -> tuple[str, ...]:
    table = draft.table
    tags = [f"copy.into_{table.persistence.lower() or table.family.value}"]
    if table.persistence and table.family is Family.PARTITIONED:
        tags.append("copy.into_partitioned")
    return tuple(tags)


def _names(table: CopyTable) -> tuple[str, ...]:
    return tuple(column.name for column in table.copied)


def _query(rng: random.Random, table: CopyTable, names: tuple[str, ...]) -> str:
    where = pick(rng, ("", " WHERE id % 4 = 1", " WHERE k IS NOT NULL"))
    return f"(SELECT {', '.join(names)} FROM {table.name}{where} ORDER BY id)"


def _of_table(rng: random.Random, state: CopyState, table: CopyTable) -> tuple[str, tuple[str, ...], bool]:
    names = _names(table)
    if table.family is not Family.PLAIN:  # PostgreSQL 17 copies other relations from a query only
        return _query(rng, table, names), names, True
    if chance(rng, 50):
        return table.name, names, False
    names = tuple(some(rng, names, between(rng, 1, len(names))))
    return f"{table.name} ({', '.join(names)})", names, False


def _of_query(rng: random.Random, state: CopyState, table: CopyTable) -> tuple[str, tuple[str, ...], bool]:
    names = tuple(some(rng, _names(table), between(rng, 1, len(table.copied))))
    return _query(rng, table, names), names, True


def _of_groups(rng: random.Random, state: CopyState, table: CopyTable) -> tuple[str, tuple[str, ...], bool]:
    query = f"(SELECT k, count(*) AS n, sum(id) AS s FROM {table.name} GROUP BY k ORDER BY k NULLS LAST)"
    return query, ("k", "n", "s"), True


def _of_partition(rng: random.Random, state: CopyState, table: CopyTable) -> tuple[str, tuple[str, ...], bool]:
    if not table.partitions:
        return _of_table(rng, state, table)
    return pick(rng, table.partitions), _names(table), False


def _of_join(rng: random.Random, state: CopyState, table: CopyTable) -> tuple[str, tuple[str, ...], bool]:
    other = pick(rng, state.tables)
    query = f"(SELECT a.id, b.id AS other FROM {table.name} a JOIN {other.name} b ON b.id = a.id + 1 ORDER BY a.id)"
    return query, ("id", "other"), True


SOURCES: Weighted[Callable[[random.Random, CopyState, CopyTable], tuple[str, tuple[str, ...], bool]]] = Weighted(
    (4, _of_table),
    (4, _of_query),
    (2, _of_groups),
    (2, _of_partition),
    (2, _of_join),
)


def make_copy_out(rng: random.Random, state: CopyState, table: CopyTable) -> tuple[Step, CopyState]:
    """Return a COPY TO STDOUT, and the state after it. A change with RETURNING uses row numbers of the state."""
    if chance(rng, 15) and (returning := make_returning(rng, state, table)):
        query, state = returning
        options = make_output_options(rng, ("id",), ordered=False)
        step = Step(f"COPY ({query}) TO STDOUT{options.sql()}", Kind.COPY_OUT, tags=("copy.out", "copy.out.returning"))
        return step, state
    source, names, ordered = SOURCES.pick(rng)(rng, state, table)
    options = make_output_options(rng, names, ordered=ordered)
    tags = ("copy.out", f"copy.out.{options.format}")
    return Step(f"COPY {source} TO STDOUT{options.sql()}", Kind.COPY_OUT, ordered=ordered, tags=tags), state
