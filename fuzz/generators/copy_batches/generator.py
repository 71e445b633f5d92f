"""Generator `copy_batches`: COPY in batches around the limits of buffers and resource owners, with other statements.

Besides tables, a scene has only those types, sequences, functions and audit table that it uses.
"""

import random
import re
from collections.abc import Callable, Iterable
from typing import ClassVar

from fuzz.generators import loopback
from fuzz.generators.choices import Stream, Weighted, begin, between, chance, pick
from fuzz.generators.copy_batches import buffers, lines, shapes, written
from fuzz.generators.copy_batches.binary import binary
from fuzz.generators.copy_batches.changes import make_change, make_check
from fuzz.generators.copy_batches.copy import Requirements, has_many_keys, make_copy, make_copy_out
from fuzz.generators.copy_batches.deferred import make_deferred
from fuzz.generators.copy_batches.encoded import encoded_input, encoded_output
from fuzz.generators.copy_batches.many_references import HELPERS, make_references
from fuzz.generators.copy_batches.outside import make_outside
from fuzz.generators.copy_batches.partitions import MANY_PARTITIONS
from fuzz.generators.copy_batches.reading import make_reading
from fuzz.generators.copy_batches.redefined import PLANS, make_redefined
from fuzz.generators.copy_batches.table import REFERENCES, CopyState, CopyTable, Made
from fuzz.generators.copy_batches.tables import DEFAULT_HELPERS, make_foreign, make_table
from fuzz.generators.copy_batches.transactions import REFUSED_HELPERS, TRANSACTIONS, make_block
from fuzz.generators.copy_batches.triggers import AUDIT, make_leaf_triggers, make_triggers, make_view
from fuzz.generators.copy_batches.values import USER_TYPES
from fuzz.generators.generator import Generator, Scale
from oracles.model.case import Case, Step

PROLOGUE = (
    *USER_TYPES,
    *DEFAULT_HELPERS,
    AUDIT,
    "CREATE TABLE ref (id int4 PRIMARY KEY, note text)",
    f"INSERT INTO ref SELECT g, 'note ' || g FROM generate_series(1, {REFERENCES}) g",
    *written.HELPERS,
    *REFUSED_HELPERS,
    *shapes.HELPERS,
    *HELPERS,
)
_NAME = re.compile(r"(?:CREATE (?:OR REPLACE |MATERIALIZED )?\w+|ALTER TABLE|INSERT INTO) (\w+)")


def needed(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Return the statements of PROLOGUE whose objects these steps use, directly or indirectly."""
    words = {word for step in steps for word in re.findall(r"\w+", step.sql)}
    kept = []
    for statement in reversed(PROLOGUE):
        named = _NAME.match(statement)
        if named and named[1] in words:
            kept.append(Step(statement))
            words.update(re.findall(r"\w+", statement))
    return tuple(reversed(kept))


TABLES = Weighted((6, 1), (4, 2), (1, 3))
FEWEST_STEPS = 10
RETURNING = Requirements(returning=True)
# In the mode `parallel`, each index build on an empty partition would wait for workers to start.
LONE_BUILDS = ("SET max_parallel_maintenance_workers = 0",)


def _transaction(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    return TRANSACTIONS.pick(rng)(rng, state, table)


def _plan(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    return PLANS.pick(rng)(rng, state, table)


def _output(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    if chance(rng, 35):
        return (encoded_output(rng),), state
    step, state = make_copy_out(rng, state, table)
    return (step,), state


ACTIONS: Weighted[Callable[[random.Random, CopyState, CopyTable], Made]] = Weighted(
    (28, _transaction),
    (12, _plan),
    (8, make_redefined),
    (6, make_block),
    (10, _output),
    (6, make_change),
    (6, make_references),
    (1, make_outside),  # rare, because only superusers may do this
)


WRITTEN: Weighted[Callable[[random.Random], written.WrittenCopy]] = Weighted(
    (10, lines.ends),
    (3, lines.escapes),
    (3, lines.headers),
    (2, lines.markers),
    (3, binary),
    (3, encoded_input),
    (5, buffers.divided),
)


def _written(rng: random.Random, queries: int) -> tuple[Step, ...]:
    """Return small COPYs of irregular data and of unusual tables, queries of the rows, and COPYs of constants."""
    most, few = max(1, queries * 3 // 8), max(1, queries // 10)
    copies = tuple(WRITTEN.pick(rng)(rng).step for _ in range(between(rng, max(1, most // 2), most)))
    unusual = tuple(step for _ in range(between(rng, 1, few)) for step in shapes.make_shape(rng))
    outputs = tuple(encoded_output(rng) for _ in range(between(rng, 1, few)))
    return (*copies, *written.contents(copies), *unusual, *outputs)


def _returns(rng: random.Random, state: CopyState) -> Made:
    """Return COPYs into each table with many partitions. They use more buffers than COPY keeps."""
    steps: tuple[Step, ...] = ()
    for table in filter(has_many_keys, state.tables):
        begin(rng, Stream.ACTION)
        for _ in range(between(rng, 1, 2)):
            copy, state = make_copy(rng, state, table, RETURNING)
            steps += (copy, make_check(rng, state, table))
    return steps, state


class CopyBatches(Generator):
    """COPY FROM STDIN, valid and invalid, around every limit of copyfrom.c and of resource owners."""

    name: ClassVar[str] = "copy_batches"
    cpu_seconds: ClassVar[float] = 2.7
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "extended",
        "prepared_generic",
        "prepared_custom",
        "cursor",
        "closed_early",
        "small_memory",
        "hash_spilling",
        "parallel",
        "no_pruning",
    )
    scene_weight: ClassVar[int] = 1
    query_weight: ClassVar[int] = 3

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a scene of one to three tables, perhaps with views, and 10 to about `scale.queries` + 10 steps."""
        state, scene = _scene(rng, CopyState(scale))
        steps, state = _returns(rng, state)
        wanted = len(steps) + between(rng, FEWEST_STEPS, FEWEST_STEPS + scale.queries)
        while len(steps) < wanted:
            begin(rng, Stream.ACTION)
            table = pick(rng, state.tables)
            made, state = ACTIONS.pick(rng)(rng, state, table)
            steps += made
        if chance(rng, 60):
            begin(rng, Stream.ACTION)
            steps += _written(rng, scale.queries)
        if chance(rng, 35):
            begin(rng, Stream.ACTION)
            made, state = make_deferred(rng, state)
            steps += made
        steps += tuple(make_check(rng, state, table) for table in state.tables)
        return Case(self.name, (*needed(scene + steps), *scene), steps)


def _scene(rng: random.Random, state: CopyState) -> tuple[CopyState, tuple[Step, ...]]:
    steps: tuple[Step, ...] = ()
    tables: tuple[CopyTable, ...] = ()
    for number in range(TABLES.pick(rng)):
        if chance(rng, 10):
            table, made = make_foreign(rng, f"t{number}")
        else:
            table, made = _local(rng, state, f"t{number}")
        tables, steps = (*tables, table), steps + made
        if chance(rng, 15):
            fixed, view, made = make_view(rng, table, f"v{number}")
            tables, steps = (*tables[:-1], fixed, view), steps + made
    loop = loopback.PROLOGUE if any(table.remote for table in tables) else ()
    alone = LONE_BUILDS if any(table.leaves > 1 for table in tables) else ()
    return CopyState(state.scale, tables), (*map(Step, (*alone, *loop)), *steps)


def _local(rng: random.Random, state: CopyState, name: str) -> tuple[CopyTable, tuple[Step, ...]]:
    table, steps = make_table(rng, state, name)
    many = table.leaves >= MANY_PARTITIONS
    # Triggers that read the table make COPY write its buffers early, so that it seldom has too many of them.
    if chance(rng, 30 if many else 50 if table.named_leaves else 25):
        table, reading = make_reading(rng, table)
        steps += reading
    if many and chance(rng, 20):
        steps += make_leaf_triggers(rng, table)
    # Frequent triggers would prevent COPY from batching.
    if not chance(rng, 15 if many else 45):
        return table, steps
    table, triggers = make_triggers(rng, table)
    return table, steps + triggers
