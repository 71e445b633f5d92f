"""COPY into tables whose definition has just changed, or changes in the same transaction and perhaps back again."""

import random
from collections.abc import Callable
from dataclasses import replace

from fuzz.generators.choices import Weighted, chance, pick
from fuzz.generators.copying.checks import make_check
from fuzz.generators.copying.copy_in import RIGHT, Wish, make_copy
from fuzz.generators.copying.ddl import make_definition
from fuzz.generators.copying.table import Family, Made, Scope, Table
from fuzz.generators.copying.transactions import BEGINS, ENDS, alone
from oracles.case import Step

NOT_IN_TRANSACTIONS = ("VACUUM", "REINDEX")  # the latter of partitioned tables


def _copy(rng: random.Random, scope: Scope, table: Table, wish: Wish = RIGHT) -> tuple[Step, Scope]:
    step, scope = make_copy(rng, scope, table, wish)
    return replace(step, tags=(*step.tags, "copy.redefined")), scope


def afterwards(rng: random.Random, scope: Scope, table: Table) -> Made:
    """Return a changed definition, and a COPY into what it left."""
    made, scope = make_definition(rng, scope, table)
    current = scope.table(table.name)
    copy, scope = _copy(rng, scope, current)
    return (*made, copy, make_check(rng, scope, current)), scope


def taken_back(rng: random.Random, scope: Scope, table: Table) -> Made:
    """Return a transaction that changes a definition, copies, and is rolled back (or the change alone is)."""
    made, inside = make_definition(rng, scope, table)
    if any(step.sql.startswith(NOT_IN_TRANSACTIONS) for step in made):
        return alone(rng, scope, table)
    current = inside.table(table.name)
    copy, after = _copy(rng, inside, current)
    steps: tuple[Step, ...] = (*made, copy, make_check(rng, after, current))
    back = replace(scope, next_id=after.next_id, next_name=after.next_name)
    if chance(rng, 50):
        steps = (Step("BEGIN"), Step("SAVEPOINT s1"), *steps, Step("ROLLBACK TO s1"))
        again, back = _copy(rng, back, table)
        return (*steps, again, Step(ENDS.pick(rng)), make_check(rng, back, table)), back
    again, back = _copy(rng, back, table)
    return (Step(BEGINS.pick(rng)), *steps, Step("ROLLBACK"), again, make_check(rng, back, table)), back


def without_triggers(rng: random.Random, scope: Scope, table: Table) -> Made:
    """Return a COPY while the table's triggers are off."""
    if table.family is Family.VIEW or not table.slow:
        return afterwards(rng, scope, table)
    quiet = replace(
        table,
        slow=False,
        skips_rows=False,
        checked=table.checked - {"raise"},
        deferred=table.deferred - {"raise"},
    )
    copy, scope = _copy(rng, scope, quiet, Wish(mistaken=chance(rng, 20)))
    off, on = (Step(f"ALTER TABLE {table.name} {how} TRIGGER USER") for how in ("DISABLE", "ENABLE"))
    return (off, copy, on, make_check(rng, scope, table)), scope


def fresh(rng: random.Random, scope: Scope, table: Table) -> Made:
    """Return a transaction that makes a table like another, copies into it (frozen, perhaps), and ends either way."""
    if table.family is not Family.PLAIN or table.remote:
        return alone(rng, scope, table)
    name = f"fresh_{scope.next_name}"
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
    first, scope = _copy(rng, scope.named(), made, Wish(freeze=frozen))
    second, scope = _copy(rng, scope, made)
    steps: tuple[Step, ...] = (
        Step("BEGIN"),
        Step(f"{made.create} {name} (LIKE {table.name} INCLUDING ALL)"),
        first,
        make_check(rng, scope, made),
    )
    if not made.deferred:  # with checks pending, a table cannot be changed
        steps += (Step(f"ALTER TABLE {name} ALTER COLUMN pad SET DEFAULT 'later'"),)
    end = ENDS.pick(rng)
    dropped = (Step(f"DROP TABLE {name}"),) if end == "COMMIT" else ()
    return (*steps, second, Step(end), *dropped), scope


REDEFINED: Weighted[Callable[[random.Random, Scope, Table], Made]] = Weighted(
    (4, afterwards),
    (3, taken_back),
    (2, without_triggers),
    (2, fresh),
)


def make_redefined(rng: random.Random, scope: Scope, table: Table) -> Made:
    """Return changes of definitions with COPYs around them."""
    return REDEFINED.pick(rng)(rng, scope, table)
