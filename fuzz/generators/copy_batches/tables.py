"""Tables as targets of COPY: plain, partitioned, temporary, unlogged, wide or foreign.

They have constraints, indexes, defaults and generated columns.
"""

import random
import re
from collections.abc import Callable
from dataclasses import replace

from fuzz.generators import loopback
from fuzz.generators.choices import Weighted, between, chance, pick, shuffled, some
from fuzz.generators.copy_batches.partitions import make_partitioned
from fuzz.generators.copy_batches.table import CopyColumn, CopyState, CopyTable, Family, Role
from fuzz.generators.copy_batches.triggers import make_plain_trigger, make_remote_skipping
from fuzz.generators.copy_batches.values import INT4, INT4RANGE, TEXT, make_type
from fuzz.generators.sql.partitions import attached
from oracles.model.case import Step

_THERE = re.compile(r"CREATE TABLE (\w+_there) ")
BATCH_SIZES = Weighted((3, 10), (3, 33), (2, 1), (2, 2), (1, 1000))


def make_foreign(rng: random.Random, name: str) -> tuple[CopyTable, tuple[Step, ...]]:
    """Return a foreign table, or a table with foreign partitions, and the steps that create it."""
    columns = (
        CopyColumn("id", INT4, Role.ID, nullable=False),
        CopyColumn("k", INT4, Role.KEY),
        CopyColumn("pad", TEXT, Role.PAD),
        *(CopyColumn(f"c{number}", make_type(rng)) for number in range(rng.randrange(3))),
    )
    table = CopyTable(name, columns, remote=True)
    table, statements = pick(rng, (_foreign_table, _foreign_partitions))(rng, table)
    steps = tuple(Step(statement, tags=("foreign",)) for statement in statements)
    if chance(rng, 40):
        table, skipping = make_remote_skipping(table, [found[1] for found in map(_THERE.match, statements) if found])
        steps += skipping
    if rng.randrange(3):
        return table, steps
    table, triggers = make_plain_trigger(rng, table)
    return table, steps + triggers


def _foreign_table(rng: random.Random, table: CopyTable) -> tuple[CopyTable, tuple[str, ...]]:
    return replace(table, family=Family.FOREIGN), _remote(table, table.name, BATCH_SIZES.pick(rng), "")


def _foreign_partitions(rng: random.Random, table: CopyTable) -> tuple[CopyTable, tuple[str, ...]]:
    """Return list partitions, some local and some foreign, each with its own batch size."""
    statements: tuple[str, ...] = (f"CREATE TABLE {table.name} ({_foreign_columns(table)}) PARTITION BY LIST (k)",)
    count = rng.randint(2, 4)
    for key in range(count):
        child = f"{table.name}_{key}"
        bound = f"FOR VALUES IN ({key})"
        if not rng.randrange(3):
            statements += (f"CREATE TABLE {child} PARTITION OF {table.name} {bound}",)
        elif chance(rng, 50):
            statements += _remote(table, child, BATCH_SIZES.pick(rng), f"PARTITION OF {table.name} {bound}")
        else:
            other = shuffled(rng, [*(column.definition for column in table.columns), "gone int8"])
            there, create = _remote(table, child, BATCH_SIZES.pick(rng), f"({', '.join(other)})")
            statements += (there, *attached(create, child, table.name, bound))
    keys = tuple(range(count))
    return replace(table, family=Family.PARTITIONED, keys=keys, leaves=count, takes_any_key=False), statements


def _remote(table: CopyTable, name: str, batch_size: int, partition: str) -> tuple[str, ...]:
    """Return statements that create a local table, and a foreign table that refers to it."""
    shape = partition or f"({_foreign_columns(table)})"
    return (
        f"CREATE TABLE {name}_there ({_foreign_columns(table)})",
        loopback.foreign_table(name, shape, f"{name}_there", f"batch_size '{batch_size}'"),
    )


def _foreign_columns(table: CopyTable) -> str:
    return ", ".join(column.definition for column in table.columns)


DEFERRING = Weighted((6, ""), (2, " DEFERRABLE"), (3, " DEFERRABLE INITIALLY DEFERRED"))
STORAGE = Weighted((6, ""), (2, "STORAGE EXTERNAL"), (1, "STORAGE MAIN COMPRESSION pglz"), (1, 'COLLATE "C"'))
PERSISTENCE = Weighted((7, ""), (2, "UNLOGGED"), (2, "TEMPORARY"))

# Constraints: (percentage of tables, kind, clause). The kind `raise` belongs to triggers; see triggers.py.
CHECKS = (
    (35, "check", "CHECK (k < 900000)"),
    (25, "not null", "CHECK (pad IS NOT NULL OR id > 0)"),
)

INDEXES = (
    "CREATE INDEX ON {name} (k, id)",
    "CREATE INDEX ON {name} (id DESC)",
    "CREATE INDEX ON {name} USING hash (k)",
    "CREATE INDEX ON {name} (k) WHERE id % 2 = 0",
    "CREATE INDEX ON {name} ((id % 10), (left(pad, 8)))",
    "CREATE INDEX ON {name} USING brin (id)",
    "CREATE INDEX ON {name} (k) INCLUDE (id)",
    'CREATE INDEX ON {name} (left(pad, 20) COLLATE "C") WITH (fillfactor = 50)',
)

# Deterministic defaults. The functions `volatile_tick` and `volatile_keep` of the scene are declared volatile, so that
# COPY does not batch its inserts. They are in PL/pgSQL, because the planner would inline them from SQL.
DEFAULTS = Weighted(
    (6, "DEFAULT 7"),
    (3, "DEFAULT length('seven') + 2"),
    (3, "DEFAULT nextval('ticks')"),
    (2, "DEFAULT volatile_tick()"),
    (3, "GENERATED BY DEFAULT AS IDENTITY"),
    (2, "GENERATED ALWAYS AS IDENTITY (START 100 INCREMENT 3)"),
)

DEFAULT_HELPERS = (
    "CREATE SEQUENCE ticks",
    "CREATE FUNCTION volatile_tick() RETURNS int4 LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN nextval(''ticks''); END'",
    "CREATE FUNCTION volatile_keep(number int4) RETURNS bool LANGUAGE plpgsql VOLATILE"
    " AS 'BEGIN RETURN number % 5 <> 2; END'",
)

GENERATED = ("id::int8 * 2", "coalesce(k, 0)::int8 + id", "length(pad)::int8")


def make_table(rng: random.Random, state: CopyState, name: str) -> tuple[CopyTable, tuple[Step, ...]]:
    """Return a table, and the steps that create it."""
    persistence = PERSISTENCE.pick(rng)
    table = CopyTable(name, _columns(rng, persistence), persistence=persistence)
    by: str = ""
    following: tuple[str, ...] = ()
    if chance(rng, 45):
        limit = min(state.scale.partitions, 9) if persistence == "TEMPORARY" else state.scale.partitions
        table, by, following = make_partitioned(rng, table, limit)
    if not table.with_role(Role.KEY)[0].nullable:
        table = replace(table, keys=tuple(key for key in table.keys if key is not None))
    table, constraints = _constraints(rng, table)
    attached = any("ATTACH" in statement for statement in following)
    if attached:  # an attached partition would need the same constraints before, so they are added afterwards
        following += tuple(f"ALTER TABLE {name} ADD {clause}" for clause in constraints)
        constraints = ()
    if not by and chance(rng, 10):
        by = " WITH (fillfactor = 20)"
    body = ", ".join((*(column.definition for column in table.columns), *constraints))
    statements = (f"{table.create} {name} ({body}){by}", *following)
    if chance(rng, 10 if table.leaves > state.scale.partitions else 40):
        statements += tuple(index.format(name=name) for index in some(rng, INDEXES, between(rng, 1, 3)))
    return table, tuple(Step(_logged_parent(statement)) for statement in statements)


def _logged_parent(statement: str) -> str:
    """Return the statement without UNLOGGED if it creates a table that has partitions.

    UNLOGGED has no effect on such a table, and PostgreSQL 18 refuses it.
    """
    return statement.replace("UNLOGGED ", "") if "PARTITION BY" in statement else statement


def _columns(rng: random.Random, persistence: str) -> tuple[CopyColumn, ...]:
    columns = [
        CopyColumn("id", INT4, Role.ID, nullable=False),
        CopyColumn("k", INT4, Role.KEY, nullable=chance(rng, 75)),
        CopyColumn("pad", TEXT, Role.PAD, suffix=STORAGE.pick(rng)),
    ]
    count = between(rng, 20, 60) if chance(rng, 4) else between(rng, 0, 4)
    columns += [CopyColumn(f"c{number}", make_type(rng)) for number in range(count)]
    columns += [make(rng) for percent, make in EXTRAS if chance(rng, percent)]
    columns = [column for column in columns if persistence != "TEMPORARY" or column.role is not Role.REFERENCE]
    if chance(rng, 40):
        columns = list(shuffled(rng, columns))
    return tuple(columns)


def _default(rng: random.Random) -> CopyColumn:
    clause = DEFAULTS.pick(rng)
    return CopyColumn("d", INT4, Role.DEFAULTED, nullable="IDENTITY" not in clause, suffix=clause)


def _generated(rng: random.Random) -> CopyColumn:
    from_others = f"GENERATED ALWAYS AS ({pick(rng, GENERATED)}) STORED"
    return CopyColumn("g", replace(INT4, sql="int8"), Role.GENERATED, suffix=from_others)


EXTRAS: tuple[tuple[int, Callable[[random.Random], CopyColumn]], ...] = (
    (40, _default),
    (25, _generated),
    (25, lambda rng: CopyColumn("r", INT4, Role.REFERENCE)),
    (15, lambda rng: CopyColumn("span", INT4RANGE, Role.SPAN)),
)


def _constraints(rng: random.Random, table: CopyTable) -> tuple[CopyTable, tuple[str, ...]]:
    """Return the table with its kinds of checks, and the clauses of the constraints."""
    clauses = [clause for percent, _, clause in CHECKS if chance(rng, percent)]
    at_once = {kind for _, kind, clause in CHECKS if clause in clauses}
    late: set[str] = set()
    for kind, clause in _deferrable(rng, table):
        deferring = DEFERRING.pick(rng)
        if kind == "primary":
            kind, deferring = "unique", ""
        (late if "INITIALLY" in deferring else at_once).add(kind)
        clauses.append(clause + deferring)
    upserts = "unique" in at_once and not any("DEFERRABLE" in clause for clause in clauses)
    table = replace(table, checked=frozenset(at_once), deferred=frozenset(late), upserts=upserts)
    return table, tuple(clauses)


def _deferrable(rng: random.Random, table: CopyTable) -> list[tuple[str, str]]:
    found = []
    if chance(rng, 45):
        key_never_null = not any(column.nullable for column in table.with_role(Role.KEY))
        kind = "primary" if key_never_null or table.family is Family.PLAIN else "unique"
        columns = "id" if table.family is Family.PLAIN else "id, k"
        found.append((kind, f"{'PRIMARY KEY' if kind == 'primary' else 'UNIQUE'} ({columns})"))
    if table.with_role(Role.REFERENCE):
        found.append(("reference", "FOREIGN KEY (r) REFERENCES ref (id)"))
    if table.with_role(Role.SPAN) and table.family is Family.PLAIN and chance(rng, 70):
        found.append(("exclusion", "EXCLUDE USING gist (span WITH &&)"))
    return found
