"""Triggers of all kinds, and views with INSTEAD OF triggers. They record their calls in the table `audit`."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fuzz.generators.choices import Weighted, chance, pick, some
from fuzz.generators.copy_batches.partitions import loop
from fuzz.generators.copy_batches.table import BOOM_KEY, CopyColumn, CopyTable, Family, Role
from oracles.model.case import Step

AUDIT = "CREATE TABLE audit (what text, n int8, total int8)"
RECORD = "INSERT INTO audit VALUES (TG_TABLE_NAME || ' {what}', NEW.id, NEW.k);"
COUNT = "INSERT INTO audit SELECT '{name} {what}', count(*), sum(id) FROM {source};"


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger: its event, the body of its function, and the consequences for the table.

    In its texts, `{name}` stands for the table's name.
    """

    tag: str
    when: str
    clause: str
    body: str
    row: bool = True
    refuses: bool = False
    refuses_late: bool = False
    skips: bool = False


AT_BOOM = f"IF NEW.k = {BOOM_KEY} THEN RAISE EXCEPTION 'boom at %', NEW.k USING ERRCODE = 'P0042'; END IF;"
ADDED = "REFERENCING NEW TABLE AS added"

PLAIN_KINDS = ("before_row", "skipping_row", "after_row", "before_statement", "after_statement")
NUMBERS = Weighted((5, 1), (2, 2), (1, 3))

TRIGGERS: Weighted[Trigger] = Weighted(
    (4, Trigger("before_row", "BEFORE INSERT", "FOR EACH ROW", "NEW.pad := 'T' || coalesce(NEW.pad, '');")),
    (
        2,
        Trigger(
            "skipping_row",
            "BEFORE INSERT",
            "FOR EACH ROW",
            "IF NEW.id % 7 = 3 THEN RETURN NULL; END IF;",
            skips=True,
        ),
    ),
    (3, Trigger("before_row", "BEFORE INSERT", f"FOR EACH ROW WHEN (NEW.k > {BOOM_KEY - 1})", AT_BOOM, refuses=True)),
    (4, Trigger("after_row", "AFTER INSERT", "FOR EACH ROW", RECORD.format(what="after row"))),
    (3, Trigger("after_row", "AFTER INSERT", "FOR EACH ROW WHEN (NEW.id % 5 = 0)", RECORD.format(what="fifth"))),
    (3, Trigger("after_row", "AFTER INSERT", "FOR EACH ROW", AT_BOOM, refuses=True)),
    (
        3,
        Trigger(
            "before_statement",
            "BEFORE INSERT OR UPDATE OR DELETE",
            "FOR EACH STATEMENT",
            COUNT.format(name="{name}", what="before", source="{name}"),
            row=False,
        ),
    ),
    (
        3,
        Trigger(
            "after_statement",
            "AFTER INSERT OR UPDATE OR DELETE",
            "FOR EACH STATEMENT",
            COUNT.format(name="{name}", what="after", source="{name}"),
            row=False,
        ),
    ),
    (
        5,
        Trigger(
            "transition_statement",
            "AFTER INSERT",
            f"{ADDED} FOR EACH STATEMENT",
            COUNT.format(name="{name}", what="added", source="added"),
            row=False,
        ),
    ),
    (
        3,
        Trigger(
            "transition_row",
            "AFTER INSERT",
            f"{ADDED} FOR EACH ROW",
            f"IF NEW.id % 16 = 0 THEN {COUNT.format(name='{name}', what='row added', source='added')} END IF;",
        ),
    ),
    (
        3,
        Trigger(
            "catching_row",
            "AFTER INSERT",
            "FOR EACH ROW WHEN (NEW.id % 4 = 1)",
            f"BEGIN {RECORD.format(what='tried')} IF NEW.id % 8 = 1 THEN RAISE division_by_zero; END IF;"
            f" EXCEPTION WHEN division_by_zero THEN {RECORD.format(what='caught')} END;",
        ),
    ),
    (
        3,
        Trigger(
            "deferred_row",
            "CONSTRAINT AFTER INSERT",
            "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.id % 3 = 0)",
            RECORD.format(what="deferred"),
        ),
    ),
    (
        2,
        Trigger(
            "deferred_row",
            "CONSTRAINT AFTER INSERT",
            "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW",
            AT_BOOM,
            refuses_late=True,
        ),
    ),
)


def make_triggers(rng: random.Random, table: CopyTable) -> tuple[CopyTable, tuple[Step, ...]]:
    """Return the table with some triggers, and the steps that create them."""
    steps: tuple[Step, ...] = ()
    for number in range(NUMBERS.pick(rng)):
        trigger = TRIGGERS.pick(rng)
        if table.family is Family.PARTITIONED and trigger.tag == "transition_row":
            continue  # PostgreSQL refuses them on partitioned tables
        table = _with(table, trigger)
        steps += create_trigger(trigger, table.name, f"{table.name}_trigger_{number}")
    if table.named_leaves and chance(rng, 30):
        leaf = pick(rng, table.named_leaves)
        steps += create_trigger(TRIGGERS.options[0], leaf, f"{leaf}_trigger")
    return table, steps


_OF_LEAVES = Weighted(
    (5, ("BEFORE INSERT", TRIGGERS.options[0].body)),
    (3, ("AFTER INSERT", RECORD.format(what="after row"))),
)


def make_leaf_triggers(rng: random.Random, table: CopyTable) -> tuple[Step, ...]:
    """Return the steps that create triggers of some leaves: of a few, of a third, or of all but one.

    COPY has no buffers for leaves with BEFORE triggers. It writes all buffers when a row goes to such a leaf.
    """
    known = len(table.named_leaves)
    leaves = some(rng, table.named_leaves, pick(rng, (1, 2, known // 3, known - 1)))
    when, body = _OF_LEAVES.pick(rng)
    function = f"{table.name}_of_leaves"
    named = f"(ARRAY[{', '.join(repr(leaf) for leaf in leaves)}])[1 + i]"
    create = f"CREATE TRIGGER of_leaves {when} ON %2$s FOR EACH ROW EXECUTE FUNCTION {function}()"
    return (
        Step(f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} RETURN NEW; END $$"),
        Step(loop(len(leaves), create, named), tags=("trigger.of_leaves",)),
    )


def make_plain_trigger(rng: random.Random, table: CopyTable) -> tuple[CopyTable, tuple[Step, ...]]:
    """Return the table with a trigger that foreign tables support: no transition tables, no deferral."""
    plain = [trigger for trigger in TRIGGERS.options if trigger.tag in PLAIN_KINDS]
    trigger = pick(rng, plain)
    return _with(table, trigger), create_trigger(trigger, table.name, f"{table.name}_trigger")


def make_remote_skipping(table: CopyTable, remote: Sequence[str]) -> tuple[CopyTable, tuple[Step, ...]]:
    """Return the table, and the steps that create triggers of its remote tables, which skip whole batches of rows."""
    body = "IF NEW.id % 100 >= 50 THEN RETURN NULL; END IF;"
    trigger = Trigger("remote_skipping", "BEFORE INSERT", "FOR EACH ROW", body, skips=True)
    steps = tuple(step for name in remote for step in create_trigger(trigger, name, f"{name}_trigger"))
    return replace(table, skips_rows=table.skips_rows or bool(remote)), steps


def _with(table: CopyTable, trigger: Trigger) -> CopyTable:
    checked = table.checked | {"raise"} if trigger.refuses else table.checked
    deferred = table.deferred | {"raise"} if trigger.refuses_late else table.deferred
    return replace(
        table,
        checked=checked,
        deferred=deferred,
        slow=table.slow or trigger.row,
        skips_rows=table.skips_rows or trigger.skips,
    )


def create_trigger(trigger: Trigger, table: str, name: str) -> tuple[Step, ...]:
    """Return the steps that create the trigger of a table, and its function."""
    body = trigger.body.replace("{name}", table)
    constraint, when = (
        ("CONSTRAINT ", trigger.when[11:]) if trigger.when.startswith("CONSTRAINT") else ("", trigger.when)
    )
    result = "NEW" if trigger.row else "NULL"
    function = f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} RETURN {result}; END $$"
    create = f"CREATE {constraint}TRIGGER {name} {when} ON {table} {trigger.clause} EXECUTE FUNCTION {name}()"
    return Step(function), Step(create, tags=(f"trigger.{trigger.tag}",))


def make_view(rng: random.Random, table: CopyTable, name: str) -> tuple[CopyTable, CopyTable, tuple[Step, ...]]:
    """Return the table (now `fixed`), a view of it with an INSTEAD OF trigger, and the steps that create the view."""
    shown: tuple[CopyColumn, ...] = tuple(
        column
        for column in table.copied
        if column.required or column.role in (Role.ID, Role.KEY, Role.PAD) or (column.suffix == "" and chance(rng, 50))
    )
    columns = ", ".join(column.name for column in shown)
    values = ", ".join(f"NEW.{column.name}" for column in shown)
    body = f"INSERT INTO {table.name} ({columns}) VALUES ({values});"
    if chance(rng, 40):
        body = f"IF NEW.id % 6 = 5 THEN RETURN NULL; END IF; {body}"
    trigger = Trigger("instead_of", "INSTEAD OF INSERT", "FOR EACH ROW", body, skips="RETURN NULL" in body)
    temporary = "TEMPORARY " if table.persistence == "TEMPORARY" else ""
    steps = (
        Step(f"CREATE {temporary}VIEW {name} AS SELECT {columns} FROM {table.name}"),
        *create_trigger(trigger, name, f"{name}_trigger"),
    )
    view = replace(
        _with(table, trigger),
        name=name,
        columns=shown,
        family=Family.VIEW,
        persistence="",
        partitions=(),
        upserts=False,
    )
    return replace(table, fixed=True), view, steps
