"""COPY into tables after DDL, or after DDL in the same transaction, which may be rolled back.

Cursors and prepared statements hold plans, snapshots and pins meanwhile. The DDL may invalidate these plans.
"""

import random
from collections.abc import Callable
from dataclasses import replace

from fuzz.generators.choices import Weighted, between, chance, pick
from fuzz.generators.copy_batches.changes import insert_select, make_check
from fuzz.generators.copy_batches.copy import NO_REQUIREMENTS, Requirements, make_copy
from fuzz.generators.copy_batches.table import CopyColumn, CopyState, CopyTable, Family, Made, Role
from fuzz.generators.copy_batches.transactions import BEGINS, ENDS, all_may_fail, alone
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
    rng: random.Random, state: CopyState, table: CopyTable, required: Requirements = NO_REQUIREMENTS
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


CURSOR_QUERIES = (
    "SELECT id, k FROM {name} ORDER BY id",
    "SELECT id, k FROM {name} WHERE id % 2 = 0 ORDER BY id DESC",
    "SELECT k, count(*) FROM {name} GROUP BY k ORDER BY k",
    "SELECT a.id, b.id FROM {name} a JOIN {name} b ON a.id = b.id ORDER BY a.id",
    "SELECT id FROM {name} UNION ALL SELECT -id FROM {name} ORDER BY 1",
)
FETCHES = Weighted((6, "FETCH {count} FROM {cursor}"), (2, "MOVE {count} IN {cursor}"), (1, "FETCH ALL FROM {cursor}"))
BACKWARD = Weighted(
    (6, "FETCH BACKWARD {count} FROM {cursor}"),
    (2, "FETCH FIRST FROM {cursor}"),
    (2, "FETCH LAST FROM {cursor}"),
)


def _fetch(rng: random.Random, cursor: str, *, scroll: bool) -> Step:
    form = (BACKWARD if scroll and chance(rng, 40) else FETCHES).pick(rng)
    return Step(form.format(count=between(rng, 1, 9), cursor=cursor), ordered=True, tags=("cursor.fetch",))


def cursors(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a transaction with open cursors on the target of a COPY. Sometimes an error ends the transaction."""
    count = between(rng, 1, 3)
    names = [f"cursor_{state.next_name + number}" for number in range(count)]
    state = state.named(count)
    scroll = chance(rng, 50)
    steps: tuple[Step, ...] = (Step(BEGINS.pick(rng)),)
    for name in names:
        query = pick(rng, CURSOR_QUERIES).format(name=table.name)
        steps += (Step(f"DECLARE {name} {'SCROLL ' if scroll else ''}CURSOR FOR {query}", tags=("cursor",)),)
        steps += (_fetch(rng, name, scroll=scroll),)
    steps += (Step("SAVEPOINT s1"),)
    wrong = chance(rng, 35)
    copy, state = make_copy(rng, state, table, Requirements(mistaken=wrong))
    steps += (replace(copy, tags=(*copy.tags, "copy.cursor_open")),)
    if copy.may_fail or chance(rng, 25):
        steps += (Step("ROLLBACK TO s1"),)
    steps += tuple(_fetch(rng, pick(rng, names), scroll=scroll) for _ in range(between(rng, 1, 3)))
    if chance(rng, 40):
        steps += (Step(f"CLOSE {names[0]}"),)
        names = names[1:]
    if names and chance(rng, 20):
        broken, state = make_copy(rng, state, table, Requirements(mistaken=True))
        fetch = _fetch(rng, names[-1], scroll=scroll)
        steps += (broken, *(all_may_fail((fetch,)) if broken.may_fail else (fetch,)))
    return (*steps, Step(ENDS.pick(rng)), make_check(rng, state, table)), state


def held_cursor(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a cursor WITH HOLD that outlives its transaction, and a COPY after the commit."""
    name = f"cursor_{state.next_name}"
    query = pick(rng, CURSOR_QUERIES).format(name=table.name)
    steps: tuple[Step, ...] = (
        Step("BEGIN"),
        Step(f"DECLARE {name} SCROLL CURSOR WITH HOLD FOR {query}", tags=("cursor.hold",)),
        _fetch(rng, name, scroll=True),
        Step("COMMIT"),
    )
    copy, state = make_copy(rng, state.named(), table, Requirements(mistaken=chance(rng, 20)))
    copy = replace(copy, tags=(*copy.tags, "copy.cursor_open"))
    steps += (copy, _fetch(rng, name, scroll=True), Step(f"CLOSE {name}"), make_check(rng, state, table))
    return steps, state


PREPARED = (
    ("(int4) AS SELECT count(*), sum(id), min(id) FROM {name} WHERE id > $1", "(7)"),
    ("(int4) AS SELECT k, count(*) FROM {name} WHERE k = $1 OR id % 3 = 0 GROUP BY k ORDER BY k", "(1)"),
    (" AS SELECT a.id FROM {name} a WHERE EXISTS (SELECT FROM {name} b WHERE b.id = a.id + 1) ORDER BY 1", ""),
)


def prepared(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return prepared statements executed before and after COPYs and DDL."""
    name = f"plan_{state.next_name}"
    text, arguments = pick(rng, PREPARED)
    execute = Step(f"EXECUTE {name}{arguments}", ordered=True, tags=("prepared.execute",))
    steps: tuple[Step, ...] = (Step(f"PREPARE {name}{text.format(name=table.name)}", tags=("prepared",)), execute)
    state = state.named()
    for _ in range(between(rng, 1, 3)):
        current = state.table(table.name)
        if chance(rng, 60):
            made, state = make_definition(rng, state, current)
            steps += tuple(replace(step, tags=(*step.tags, "prepared.invalidation")) for step in made)
            current = state.table(table.name)
        copy, state = make_copy(rng, state, current, Requirements(mistaken=chance(rng, 15)))
        steps += (replace(copy, tags=(*copy.tags, "copy.prepared_open")), execute)
    return (*steps, Step(f"DEALLOCATE {name}")), state


def prepared_insert(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a prepared INSERT executed before and after a COPY, sometimes often enough for a generic plan."""
    name = f"plan_{state.next_name}"
    insert = insert_select(table, "$1", "$2")
    steps: tuple[Step, ...] = (Step(f"PREPARE {name} (int4, int4) AS {insert}", tags=("prepared",)),)
    state = state.named()
    for _ in range(pick(rng, (1, 3, 7))):
        first = state.next_id
        steps += (Step(f"EXECUTE {name} ({first}, {first + 4})", tags=("prepared.execute",)),)
        state = state.after_rows(5)
    copy, state = make_copy(rng, state, table)
    steps += (replace(copy, tags=(*copy.tags, "copy.prepared_open")), make_check(rng, state, table))
    return (*steps, Step(f"DEALLOCATE {name}")), state


def changed_result(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a prepared SELECT * whose result type changes. Its execution then fails, which is intended."""
    made, after = make_definition(rng, state.named(), table)
    name = f"plan_{state.next_name}"
    same = after.tables == state.tables
    execute = Step(f"EXECUTE {name}", tags=("prepared.execute",))
    steps = (Step(f"PREPARE {name} AS SELECT * FROM {table.name} WHERE id < 0"), execute, *made)
    if not same and any("COLUMN" in step.sql for step in made):
        execute = replace(execute, may_fail=True, tags=("prepared.result_changed",))
    return (*steps, execute, Step(f"DEALLOCATE {name}")), after


PLANS: Weighted[Callable[[random.Random, CopyState, CopyTable], Made]] = Weighted(
    (5, cursors),
    (2, held_cursor),
    (5, prepared),
    (2, prepared_insert),
    (2, changed_result),
)
