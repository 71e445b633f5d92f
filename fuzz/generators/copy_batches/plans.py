"""Cursors and prepared statements that hold plans, snapshots and pins during COPYs and DDL."""

import random
from collections.abc import Callable
from dataclasses import replace

from fuzz.generators.choices import Weighted, between, chance, pick
from fuzz.generators.copy_batches.changes import insert_select
from fuzz.generators.copy_batches.checks import make_check
from fuzz.generators.copy_batches.copy_in import Requirements, make_copy
from fuzz.generators.copy_batches.redefined import make_definition
from fuzz.generators.copy_batches.table import CopyState, CopyTable, Made
from fuzz.generators.copy_batches.transactions import BEGINS, ENDS, doomed
from oracles.model.case import Step

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
        steps += (broken, *(doomed((fetch,)) if broken.may_fail else (fetch,)))
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
