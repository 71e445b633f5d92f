"""Code that runs during a COPY and reads its target: triggers of some partitions, checks and defaults.

Rows come in the order of the data. So each call sees all rows before its own, unless they are still in a buffer that
COPY may keep. Other statements may read rows in any order, so the code does nothing for these.
"""

import random
from collections.abc import Callable
from dataclasses import replace

from fuzz.generators.choices import Weighted, between, chance, first_made, pick, some
from fuzz.generators.copy_batches.table import CopyTable, Role
from fuzz.generators.copy_batches.triggers import COUNT, Trigger, create_trigger
from oracles.model.case import Step

_EVERY = (2, 5, 16)  # one row in so many reads the table

Reading = tuple[CopyTable, tuple[Step, ...]]


def make_reading(rng: random.Random, table: CopyTable) -> Reading:
    """Return the table, and the steps that create code which reads it."""
    table, steps = first_made(rng, _READERS, rng, table) or _of_table(rng, table)
    return replace(table, slow=True), steps


def _of_partitions(rng: random.Random, table: CopyTable) -> Reading | None:
    """Return triggers of a few partitions, between whose rows COPY buffers those of other partitions."""
    if not table.named_leaves:
        return None
    when = _when(rng)
    steps = (_trigger(rng, table.name, leaf, when) for leaf in some(rng, table.named_leaves, between(rng, 1, 3)))
    return table, tuple(step for pair in steps for step in pair)


def _of_table(rng: random.Random, table: CopyTable) -> Reading:
    return table, _trigger(rng, table.name, table.name, _when(rng))


def _when(rng: random.Random) -> str:
    return "BEFORE" if chance(rng, 75) else "AFTER"


def _trigger(rng: random.Random, read: str, owner: str, when: str) -> tuple[Step, ...]:
    tag = "reading_table" if owner == read else "reading_partition"
    trigger = Trigger(tag, f"{when} INSERT", "FOR EACH ROW", _counting(rng, "NEW.id", owner, read))
    return create_trigger(trigger, owner, f"{owner}_reading")


def _counting(rng: random.Random, number: str, who: str, read: str) -> str:
    """Return PL/pgSQL that counts the rows so far of the table `read`, for some rows by an integer expression."""
    return f"IF {_for_some(rng, number)} THEN {COUNT.format(name=who, what=f'reads {read}', source=read)} END IF;"


def _for_some(rng: random.Random, number: str) -> str:
    return f"current_query() ILIKE 'copy%' AND {number} % {pick(rng, _EVERY)} = 1"


def _check(rng: random.Random, table: CopyTable) -> Reading:
    """Return a check, which does not prevent COPY from buffering rows."""
    function = f"{table.name}_checked"
    body = f"{_counting(rng, 'number', 'check', table.name)} RETURN true;"
    return table, (
        Step(f"CREATE FUNCTION {function}(number int4) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN {body} END $$"),
        Step(f"ALTER TABLE {table.name} ADD CHECK ({function}(id))", tags=("reading.check",)),
    )


def _default(rng: random.Random, table: CopyTable) -> Reading | None:
    """Return a volatile default, before whose evaluation COPY must have inserted all rows."""
    columns = [column for column in table.with_role(Role.DEFAULTED) if column.suffix.startswith("DEFAULT")]
    if not columns:
        return None
    function = f"{table.name}_counted"
    condition = _for_some(rng, "nextval('ticks')")
    body = f"IF {condition} THEN RETURN (SELECT count(*) FROM {table.name}); END IF; RETURN 0;"
    return table, (
        Step(f"CREATE FUNCTION {function}() RETURNS int4 LANGUAGE plpgsql AS $$ BEGIN {body} END $$"),
        Step(
            f"ALTER TABLE {table.name} ALTER COLUMN {columns[0].name} SET DEFAULT {function}()",
            tags=("reading.default",),
        ),
    )


_READERS: Weighted[Callable[[random.Random, CopyTable], Reading | None]] = Weighted(
    (60, _of_partitions), (10, _of_table), (15, _check), (15, _default)
)
