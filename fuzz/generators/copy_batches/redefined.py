"""COPY into tables after DDL, or after DDL in the same transaction, which may be rolled back.

Cursors and prepared statements may hold plans that this DDL invalidates.
"""

import random
from collections.abc import Callable
from dataclasses import replace

from fuzz.generators.choices import Weighted, chance, pick
from fuzz.generators.copy_batches.checks import make_check
from fuzz.generators.copy_batches.copy_in import RIGHT, Requirements, make_copy
from fuzz.generators.copy_batches.table import CopyColumn, CopyState, CopyTable, Family, Made, Role
from fuzz.generators.copy_batches.transactions import BEGINS, ENDS, alone
from fuzz.generators.copy_batches.values import make_type
from oracles.model.case import Step


def _step(sql: str) -> Step:
    return Step(sql, tags=("ddl",))


def _add_column(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    column = CopyColumn(f"n{state.next_name}", make_type(rng))
    state = state.named().changed(replace(table, columns=(*table.columns, column)))
    return (_step(f"ALTER TABLE {table.name} ADD COLUMN {column.definition}"),), state


def _drop_column(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    droppable = [column for column in table.columns if column.role is Role.DATA]
    if table.fixed or not droppable:
        return _add_index(rng, state, table)
    gone = pick(rng, droppable)
    kept = tuple(column for column in table.columns if column is not gone)
    return (_step(f"ALTER TABLE {table.name} DROP COLUMN {gone.name}"),), state.changed(replace(table, columns=kept))


def _add_index(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    name = f"{table.name}_index_{state.next_name}"
    steps = (_step(f"CREATE INDEX {name} ON {table.name} ({pick(rng, ('k', 'id', 'k, id'))})"),)
    return (*steps, _step(f"DROP INDEX {name}")) if chance(rng, 30) else steps, state.named()


def _rewrite(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    if table.family is Family.PARTITIONED or table.fixed:
        return (_step(f"REINDEX TABLE {table.name}"),), state
    if table.with_role(Role.GENERATED):
        return (_step(f"ALTER TABLE {table.name} SET (fillfactor = 60)"),), state
    collation = ' COLLATE "C"' if "COLLATE" in table.with_role(Role.PAD)[0].suffix else ""
    rewriting = f"ALTER COLUMN pad TYPE text{collation} USING pad || ''"
    how = pick(
        rng,
        (rewriting, "SET (fillfactor = 30)", "REPLICA IDENTITY FULL"),
    )
    return (_step(f"ALTER TABLE {table.name} {how}"),), state


def _truncate(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    return (_step(f"TRUNCATE {table.name}"),), state


def _analyze(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    return (
        _step(pick(rng, ("ANALYZE {name}", "VACUUM {name}", "VACUUM (FREEZE) {name}")).format(name=table.name)),
    ), state


def _detach(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Detach and drop a partition, so that plans lose one. The state's table no longer has its key."""
    one_key_each = len(table.partitions) == len(table.keys) >= 2
    if table.fixed or table.takes_any_key or not one_key_each:
        return _truncate(rng, state, table)
    partition = table.partitions[-1]
    left = replace(table, partitions=table.partitions[:-1], keys=table.keys[:-1], leaves=table.leaves - 1)
    detach = _step(f"ALTER TABLE {table.name} DETACH PARTITION {partition}")
    return (detach, _step(f"DROP TABLE {partition}")), state.changed(left)


DEFINITIONS: Weighted[Callable[[random.Random, CopyState, CopyTable], Made]] = Weighted(
    (5, _add_column),
    (4, _drop_column),
    (4, _add_index),
    (3, _rewrite),
    (3, _truncate),
    (2, _analyze),
    (2, _detach),
)


def make_definition(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return DDL on a table. Views and tables with a remote counterpart stay unchanged."""
    if table.family is Family.VIEW or table.remote:
        return (), state
    return DEFINITIONS.pick(rng)(rng, state, table)


NOT_IN_TRANSACTIONS = ("VACUUM", "REINDEX")  # REINDEX only for partitioned tables


def _copy(
    rng: random.Random, state: CopyState, table: CopyTable, required: Requirements = RIGHT
) -> tuple[Step, CopyState]:
    step, state = make_copy(rng, state, table, required)
    return replace(step, tags=(*step.tags, "copy.redefined")), state


def afterwards(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return DDL, and a COPY into the changed table."""
    made, state = make_definition(rng, state, table)
    current = state.table(table.name)
    copy, state = _copy(rng, state, current)
    return (*made, copy, make_check(rng, state, current)), state


def taken_back(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a transaction with DDL and COPY that is rolled back, entirely or to a savepoint."""
    made, inside = make_definition(rng, state, table)
    if any(step.sql.startswith(NOT_IN_TRANSACTIONS) for step in made):
        return alone(rng, state, table)
    current = inside.table(table.name)
    copy, after = _copy(rng, inside, current)
    steps: tuple[Step, ...] = (*made, copy, make_check(rng, after, current))
    back = replace(state, next_id=after.next_id, next_name=after.next_name)
    if chance(rng, 50):
        steps = (Step("BEGIN"), Step("SAVEPOINT s1"), *steps, Step("ROLLBACK TO s1"))
        again, back = _copy(rng, back, table)
        return (*steps, again, Step(ENDS.pick(rng)), make_check(rng, back, table)), back
    again, back = _copy(rng, back, table)
    return (Step(BEGINS.pick(rng)), *steps, Step("ROLLBACK"), again, make_check(rng, back, table)), back


def without_triggers(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a COPY while the table's triggers are disabled."""
    if table.family is Family.VIEW or not table.slow:
        return afterwards(rng, state, table)
    quiet = replace(
        table,
        slow=False,
        skips_rows=False,
        checked=table.checked - {"raise"},
        deferred=table.deferred - {"raise"},
    )
    copy, state = _copy(rng, state, quiet, Requirements(mistaken=chance(rng, 20)))
    off, on = (Step(f"ALTER TABLE {table.name} {how} TRIGGER USER") for how in ("DISABLE", "ENABLE"))
    return (off, copy, on, make_check(rng, state, table)), state


def fresh(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a transaction that creates a table like another, copies into it, and commits or rolls back.

    The COPY may have FREEZE.
    """
    if table.family is not Family.PLAIN or table.remote:
        return alone(rng, state, table)
    name = f"fresh_{state.next_name}"
    made = replace(
        table,
        name=name,
        persistence=table.persistence or pick(rng, ("", "UNLOGGED")),
        checked=table.checked - {"raise", "reference"},  # LIKE copies neither triggers nor foreign keys
        deferred=table.deferred - {"raise", "reference"},
        skips_rows=False,
        slow=False,
    )
    frozen = chance(rng, 40)
    first, state = _copy(rng, state.named(), made, Requirements(freeze=frozen))
    second, state = _copy(rng, state, made)
    steps: tuple[Step, ...] = (
        Step("BEGIN"),
        Step(f"{made.create} {name} (LIKE {table.name} INCLUDING ALL)"),
        first,
        make_check(rng, state, made),
    )
    if not made.deferred:  # ALTER TABLE fails while deferred checks are pending
        steps += (Step(f"ALTER TABLE {name} ALTER COLUMN pad SET DEFAULT 'later'"),)
    end = ENDS.pick(rng)
    dropped = (Step(f"DROP TABLE {name}"),) if end == "COMMIT" else ()
    return (*steps, second, Step(end), *dropped), state


REDEFINED: Weighted[Callable[[random.Random, CopyState, CopyTable], Made]] = Weighted(
    (4, afterwards),
    (3, taken_back),
    (2, without_triggers),
    (2, fresh),
)


def make_redefined(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return DDL and COPYs before or after it."""
    return REDEFINED.pick(rng)(rng, state, table)
