"""DO blocks with inserts inside exception blocks (subtransactions), nested and in loops."""

import random
from collections.abc import Callable

from fuzz.generators.choices import Weighted, between, pick
from fuzz.generators.copy_batches.changes import insert_columns, insert_select, refused_insert
from fuzz.generators.copy_batches.checks import make_check
from fuzz.generators.copy_batches.table import CopyState, CopyTable, Made
from oracles.model.case import Step

CATCH = "EXCEPTION WHEN OTHERS THEN INSERT INTO audit VALUES ('caught ' || SQLSTATE, {number}, 0);"


def _do(body: str, *tags: str, declare: str = "", may_fail: bool = False) -> Step:
    return Step(f"DO $$ {declare} BEGIN {body} END $$", tags=("plpgsql", *tags), may_fail=may_fail)


def _one_row(table: CopyTable, number: str) -> str:
    columns = insert_columns(table)
    values = ", ".join(expression.format(id=number) for _, expression in columns)
    return f"INSERT INTO {table.name} ({', '.join(name for name, _ in columns)}) VALUES ({values});"


def caught(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return an exception block that catches an error of its own INSERT, or one raised after it."""
    count = pick(rng, (1, 31, 32, 33, 97))
    rows = insert_select(table, str(state.next_id), str(state.next_id + count - 1))
    fatal = refused_insert(table, state.next_id + count) or "RAISE division_by_zero"
    block = f"BEGIN {rows}; {fatal}; {CATCH.format(number=count)} END;"
    state = state.after_rows(count + 2)
    return (_do(block, "plpgsql.caught"), make_check(rng, state, table)), state


def loop_of_blocks(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a loop with a subtransaction per iteration.

    Some fail, and there may be more than a backend caches (PGPROC).
    """
    count = pick(rng, (8, 33, 70))
    fails = pick(rng, (2, 3, 5))
    body = (
        f"FOR i IN {state.next_id}..{state.next_id + count - 1} LOOP BEGIN {_one_row(table, 'i')}"
        f" IF i % {fails} = 0 THEN RAISE division_by_zero; END IF; {CATCH.format(number='i')} END; END LOOP;"
    )
    state = state.after_rows(count)
    return (_do(body, "plpgsql.loop"), make_check(rng, state, table)), state


def nested_blocks(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return nested blocks with an error in the innermost block, caught at a random level."""
    depth = between(rng, 2, 6)
    body = f"{_one_row(table, str(state.next_id))} RAISE division_by_zero;"
    catches = rng.randrange(depth)
    for level in range(depth):
        number = state.next_id + 1 + level
        handler = CATCH if level == catches else "EXCEPTION WHEN no_data_found THEN NULL;"
        body = f"{_one_row(table, str(number))} BEGIN {body} {handler.format(number=level)} END;"
    state = state.after_rows(depth + 1)
    return (_do(body, "plpgsql.nested", f"plpgsql.depth_{depth}"), make_check(rng, state, table)), state


def escaping(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a block without a matching handler: the statement fails and leaves no rows."""
    rows = insert_select(table, str(state.next_id), str(state.next_id + 32))
    body = f"BEGIN {rows}; RAISE division_by_zero; EXCEPTION WHEN no_data_found THEN NULL; END;"
    state = state.after_rows(33)
    return (_do(body, "plpgsql.escaping", may_fail=True), make_check(rng, state, table)), state


def open_loop(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a loop over a query of the table, with a subtransaction for each of its first rows."""
    body = (
        f"FOR r IN SELECT id FROM {table.name} ORDER BY id LIMIT {pick(rng, (5, 20))} LOOP BEGIN"
        f" INSERT INTO audit VALUES ('looped', r.id, 1); IF r.id % 2 = 0 THEN RAISE division_by_zero; END IF;"
        f" {CATCH.format(number='r.id')} END; END LOOP;"
    )
    return (_do(body, "plpgsql.open_loop", declare="DECLARE r record;"), make_check(rng, state, table)), state


def committing(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a block that commits and rolls back between inserts."""
    count = pick(rng, (4, 9))
    body = (
        f"FOR i IN {state.next_id}..{state.next_id + count - 1} LOOP {_one_row(table, 'i')}"
        f" IF i % 3 = 0 THEN ROLLBACK; ELSE COMMIT; END IF; END LOOP;"
    )
    state = state.after_rows(count)
    return (_do(body, "plpgsql.commit"), make_check(rng, state, table)), state


BLOCKS: Weighted[Callable[[random.Random, CopyState, CopyTable], Made]] = Weighted(
    (5, caught),
    (4, loop_of_blocks),
    (4, nested_blocks),
    (2, escaping),
    (2, open_loop),
    (2, committing),
)


def make_block(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a DO block on the table."""
    return BLOCKS.pick(rng)(rng, state, table)
