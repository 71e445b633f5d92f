"""COPY in transactions: savepoints, nested and rolled-back subtransactions, deferred checks, FREEZE.

Subtransactions are also those of DO blocks with inserts inside exception blocks, nested and in loops.
"""

import random
from collections.abc import Callable
from dataclasses import replace

from fuzz.generators.choices import Weighted, between, chance, pick, some
from fuzz.generators.copy_batches.changes import insert_columns, insert_select, make_change, make_check, refused_insert
from fuzz.generators.copy_batches.copy import NO_REQUIREMENTS, Requirements, make_copy, make_copy_out
from fuzz.generators.copy_batches.table import CopyState, CopyTable, Family, Made
from oracles.model.case import Kind, Step

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


BEGINS = Weighted((6, "BEGIN"), (2, "BEGIN ISOLATION LEVEL REPEATABLE READ"), (1, "BEGIN ISOLATION LEVEL SERIALIZABLE"))
ENDS = Weighted((5, "COMMIT"), (3, "ROLLBACK"))
WORK = Weighted((8, "copy"), (3, "check"), (2, "change"), (1, "out"))
MOVES = Weighted((4, "open"), (5, "work"), (3, "fail"), (2, "release"), (2, "roll back"), (1, "immediate"))
MISTAKEN = Requirements(mistaken=True)


def all_may_fail(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the steps with `may_fail`, for a transaction that has failed."""
    return tuple(replace(step, may_fail=True) for step in steps)


def make_work(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a valid step: mostly a COPY FROM, otherwise a query, a change or a COPY TO."""
    kind = WORK.pick(rng)
    if kind == "copy":
        step, state = make_copy(rng, state, table)
    elif kind == "check":
        step = make_check(rng, state, table)
    elif kind == "change":
        return make_change(rng, state, table)
    else:
        step, state = make_copy_out(rng, state, table)
    return (step,), state


def alone(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a COPY in a transaction of its own, sometimes with a mistake, and a query of the result."""
    step, state = make_copy(rng, state, table, MISTAKEN if chance(rng, 25) else NO_REQUIREMENTS)
    return (step, make_check(rng, state, table)), state


def block(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a transaction of several steps. After an error, the remaining ones fail, too."""
    steps: tuple[Step, ...] = (Step(BEGINS.pick(rng)),)
    failed = False
    for _ in range(between(rng, 1, 4)):
        if not failed and chance(rng, 15):
            step, state = make_copy(rng, state, table, MISTAKEN)
            made: tuple[Step, ...] = (step,)
            failed = step.may_fail
        else:
            made, state = make_work(rng, state, table)
            made = all_may_fail(made) if failed else made
        steps += made
    end = "ROLLBACK" if failed and chance(rng, 60) else ENDS.pick(rng)
    return (*steps, Step(end), make_check(rng, state, table)), state


def savepoints(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a transaction that opens, releases and rolls back nested savepoints, with valid and invalid COPYs."""
    steps: tuple[Step, ...] = (Step(BEGINS.pick(rng)),)
    depth = 0
    for _ in range(between(rng, 3, 9)):
        move = MOVES.pick(rng)
        if move == "open" or depth == 0:
            depth += 1
            steps += (Step(f"SAVEPOINT s{depth}", tags=(f"subtransaction.depth_{depth}",)),)
        elif move == "work":
            made, state = make_work(rng, state, table)
            steps += tuple(_inside(step) for step in made)
        elif move == "immediate":
            # Not DEFERRED, so that the next mistake fails at once.
            steps += (Step("SET CONSTRAINTS ALL IMMEDIATE", tags=("constraints.immediate",)),)
        elif move == "fail":
            made, state, depth = _fail(rng, state, table, depth)
            steps += made
        else:
            level = between(rng, 1, depth)
            steps += (Step(f"RELEASE s{level}" if move == "release" else f"ROLLBACK TO s{level}"),)
            depth = level - 1 if move == "release" else level
    return (*steps, Step(ENDS.pick(rng)), make_check(rng, state, table)), state


def _fail(
    rng: random.Random, state: CopyState, table: CopyTable, depth: int
) -> tuple[tuple[Step, ...], CopyState, int]:
    """Return a failing COPY, perhaps a step in the failed transaction, and a rollback to a savepoint."""
    step, state = make_copy(rng, state, table, MISTAKEN)
    steps: tuple[Step, ...] = (_inside(step),)
    if step.may_fail and chance(rng, 40):
        made, state = make_work(rng, state, table)
        steps += all_may_fail(made)
    level = between(rng, 1, depth)
    return (*steps, Step(f"ROLLBACK TO s{level}")), state, level


def _inside(step: Step) -> Step:
    tag = "copy.subtransaction" if "copy" in step.tags else "change.subtransaction"
    return replace(step, tags=(*step.tags, tag))


def deferred(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a transaction with constraints checked at its end, or when SET CONSTRAINTS makes them immediate."""
    wrong = chance(rng, 60)
    copy, state = make_copy(rng, state, table, Requirements(rows=pick(rng, (2, 33, 65)), deferred=wrong))
    refused = copy.may_fail
    steps: tuple[Step, ...] = (Step("BEGIN"), replace(copy, may_fail=False, tags=(*copy.tags, "copy.deferred")))
    if chance(rng, 30):
        steps += (make_check(rng, state, table),)
    if chance(rng, 40):
        steps += (Step("SET CONSTRAINTS ALL IMMEDIATE", may_fail=refused, tags=("constraints.immediate",)),)
        again, state = make_copy(rng, state, table)
        return (*steps, *(all_may_fail((again,)) if refused else (again,)), Step("COMMIT")), state
    return (*steps, Step("COMMIT", may_fail=refused), make_check(rng, state, table)), state


_OPENED = "DECLARE opened CURSOR"
_ROWS = "FOR SELECT id FROM ref ORDER BY id"


def freeze(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a COPY FREEZE into a table truncated in the same transaction.

    It fails without the truncation, after a savepoint, with an open cursor, and on partitioned tables.
    """
    if table.family in (Family.VIEW, Family.FOREIGN):
        return block(rng, state, table)
    routed = table.family is Family.PARTITIONED
    copy, state = make_copy(rng, state, table, Requirements(freeze=True))
    spoilt = pick(rng, ("", "", "", "savepoint", "no truncate", "cursor", "held cursor"))
    copy = replace(copy, may_fail=routed or spoilt != "")
    held = spoilt == "held cursor"
    steps: tuple[Step, ...] = (Step(f"{_OPENED} WITH HOLD {_ROWS}"),) if held else ()
    steps += (Step("BEGIN"),)
    steps += (Step(f"{_OPENED} {_ROWS}"),) if spoilt == "cursor" else ()
    steps += (Step(f"TRUNCATE {table.name}"),) if spoilt != "no truncate" else ()
    steps += (Step("SAVEPOINT s1"),) if spoilt == "savepoint" else ()
    check = make_check(rng, state, table)
    steps += (copy, *(all_may_fail((check,)) if copy.may_fail else (check,)), Step(ENDS.pick(rng)))
    steps += (Step("CLOSE opened"),) if held else ()
    return steps, state


def freeze_new(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a COPY, perhaps FREEZE, into a table of the same transaction or of a subtransaction that ended."""
    name = f"new_{state.next_name}"
    inner = chance(rng, 30)
    options = pick(rng, (" WITH (FREEZE)", " WITH (FREEZE)", ""))
    made = (Step(f"CREATE TABLE {name} (n int4, s text)"),)
    copy = Step(f"COPY {name} FROM STDIN{options}", Kind.COPY_IN, copy_data=b"1\ta\n2\tb\n", tags=("copy.into_new",))
    steps = (
        Step("BEGIN"),
        *((Step("SAVEPOINT s1"), *made, Step("RELEASE s1")) if inner else made),
        copy,
        Step(f"SELECT n, s FROM {name}", Kind.QUERY),
        Step("ROLLBACK"),
    )
    return steps, state.named()


def refused_copies(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return COPYs that fail before they read data, although the client sends some, or at their first row."""
    texts = (*some(rng, REFUSED, 4), *some(rng, RELATIONS, 7))
    if table.family is not Family.PLAIN:
        texts = ("COPY {name} TO STDOUT", *texts)
    steps = tuple(_refused(text.format(name=table.name)) for text in texts)
    return (*steps, make_check(rng, state, table)), state


def _refused(sql: str) -> Step:
    kind, data = (Kind.COPY_OUT, None) if "STDOUT" in sql else (Kind.COPY_IN, b"1\t2\n")
    return Step(sql, kind, copy_data=data, may_fail=True, tags=("copy.error.options",))


_KINDS = ("noted", "kept_notes", "split", "ref_notes")
_RULED = ("ruled_nothing", "ruled_also", "ruled_some", "ruled_twice", "ruled_notify")

# Relations of all kinds, and tables with rules, for COPYs that fail.
REFUSED_HELPERS = (
    "CREATE VIEW noted AS SELECT id, note FROM ref",
    "CREATE MATERIALIZED VIEW kept_notes AS SELECT id, note FROM ref",
    "CREATE TABLE split (id int4, k int4) PARTITION BY LIST (id)",
    "CREATE INDEX ref_notes ON ref (note)",
    "CREATE DOMAIN filled AS int4 NOT NULL",
    "CREATE TABLE filling (id int4, v filled)",
    *(f"CREATE TABLE {name} (id int4)" for name in _RULED),
    "CREATE FUNCTION watched() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'",
    "CREATE VIEW watched AS SELECT id FROM ref",
    "CREATE TRIGGER watched INSTEAD OF DELETE ON watched FOR EACH ROW EXECUTE FUNCTION watched()",
    # Each rule has the name of its table, because a scene has the objects that statements name.
    "CREATE RULE ruled_nothing AS ON INSERT TO ruled_nothing DO INSTEAD NOTHING",
    "CREATE RULE ruled_also AS ON INSERT TO ruled_also DO ALSO DELETE FROM ref WHERE false",
    "CREATE RULE ruled_some AS ON INSERT TO ruled_some WHERE NEW.id > 5 DO INSTEAD DELETE FROM ref WHERE false",
    "CREATE RULE ruled_twice AS ON INSERT TO ruled_twice DO INSTEAD"
    " (DELETE FROM ref WHERE false; DELETE FROM ref WHERE id < 0)",
    "CREATE RULE ruled_notify AS ON INSERT TO ruled_notify DO INSTEAD NOTIFY noted",
)

REFUSED = (
    "COPY {name} (id, id) FROM STDIN",
    "COPY {name} (id, nowhere) FROM STDIN",
    "COPY nowhere FROM STDIN",
    "COPY {name} (id, k) FROM STDIN WITH (FORMAT csv, QUOTE ',')",
    "COPY {name} (id, k) FROM STDIN WITH (FORMAT binary, HEADER)",
    "COPY {name} (id, k) FROM STDIN WITH (FORMAT binary, ON_ERROR ignore)",
    "COPY {name} (id, k) FROM STDIN WITH (ON_ERROR 'skip')",
    "COPY {name} (id, k) FROM STDIN WITH (ON_ERROR ignore, LOG_VERBOSITY 'loud')",
    "COPY {name} (id, k) FROM STDIN WITH (ON_ERROR stop, ON_ERROR ignore)",
    "COPY two_columns TO STDOUT WITH (ON_ERROR ignore)",
    "COPY {name} (id, k) FROM STDIN WITH (ENCODING 'nowhere')",
    "COPY {name} (id, k) FROM STDIN WITH (ENCODING 'MULE_INTERNAL')",
    "COPY {name} (id, k) FROM STDIN WITH (DELIMITER 'a')",
    "COPY {name} (id, k) FROM STDIN WITH (FORMAT csv, FORCE_NULL (pad))",
    "COPY {name} (id, k) FROM STDIN WITH (NULL '', NULL 'x')",
    "COPY {name} (id, k) FROM STDIN WHERE count(*) > 1",
    "COPY {name} (id, k) FROM STDIN WHERE nowhere > 1",
    "COPY {name} (id, k) FROM STDIN WITH (HEADER match)",
    "COPY two_columns (n) FROM STDIN WITH (FORMAT csv, FORCE_NULL (s))",
    "COPY two_columns (n) FROM STDIN WITH (FORMAT csv, FORCE_NOT_NULL (n, s))",
    "COPY two_columns (n) TO STDOUT WITH (FORMAT csv, FORCE_QUOTE (s))",
    "COPY {name} (id, k) TO STDOUT WITH (FREEZE)",
    "COPY (SELECT id FROM nowhere) TO STDOUT",
    "COPY (SELECT 1 / (id - id) FROM {name} UNION ALL SELECT 1 / 0) TO STDOUT",
)

# COPYs of relations and changes that have no rows to copy, or accept none.
RELATIONS = (
    *(f"COPY {name} {how}" for name in _KINDS for how in ("FROM STDIN", "TO STDOUT")),
    "COPY ticks TO STDOUT",
    *(f"COPY (INSERT INTO {name} VALUES (1)) TO STDOUT" for name in _RULED),
    "COPY (INSERT INTO ref VALUES (9)) TO STDOUT",
    "COPY (UPDATE ref SET note = note) TO STDOUT",
    "COPY (DELETE FROM ref) TO STDOUT",
    "COPY (MERGE INTO ref USING ref AS r ON ref.id = r.id WHEN MATCHED THEN DELETE) TO STDOUT",
    "COPY (SELECT id INTO elsewhere FROM ref) TO STDOUT",
    "COPY watched FROM STDIN",
    "COPY filling FROM STDIN WITH (NULL '2')",
)

TRANSACTIONS: Weighted[Callable[[random.Random, CopyState, CopyTable], Made]] = Weighted(
    (8, alone),
    (5, block),
    (8, savepoints),
    (3, deferred),
    (2, freeze),
    (1, freeze_new),
    (3, refused_copies),
)
