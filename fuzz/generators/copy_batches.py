"""COPY in batches with duplicate descriptors, into tables of all kinds, and all that may surround a COPY."""

import random
from collections.abc import Callable
from typing import ClassVar

from fuzz.generators import loopback
from fuzz.generators.choices import Weighted, between, chance, pick
from fuzz.generators.copying.changes import make_change
from fuzz.generators.copying.checks import make_check
from fuzz.generators.copying.copy_out import make_copy_out
from fuzz.generators.copying.foreign import make_foreign
from fuzz.generators.copying.many_references import make_references
from fuzz.generators.copying.partitions import MANY_PARTITIONS
from fuzz.generators.copying.plans import PLANS
from fuzz.generators.copying.plpgsql import make_block
from fuzz.generators.copying.prologue import needed
from fuzz.generators.copying.redefined import make_redefined
from fuzz.generators.copying.table import Made, Scope, Table
from fuzz.generators.copying.tables import make_table
from fuzz.generators.copying.transactions import TRANSACTIONS
from fuzz.generators.copying.triggers import make_triggers, make_view
from fuzz.generators.generator import Generator, Scale
from oracles.case import Case, Step

TABLES = Weighted((6, 1), (4, 2), (1, 3))
FEWEST_STEPS = 10
# Under the mode `parallel` each index of each partition would wait for workers to build it, though it is empty.
LONE_BUILDS = ("SET max_parallel_maintenance_workers = 0",)


def _transaction(rng: random.Random, scope: Scope, table: Table) -> Made:
    return TRANSACTIONS.pick(rng)(rng, scope, table)


def _plan(rng: random.Random, scope: Scope, table: Table) -> Made:
    return PLANS.pick(rng)(rng, scope, table)


def _output(rng: random.Random, scope: Scope, table: Table) -> Made:
    step, scope = make_copy_out(rng, scope, table)
    return (step,), scope


ACTS: Weighted[Callable[[random.Random, Scope, Table], Made]] = Weighted(
    (14, _transaction),
    (6, _plan),
    (4, make_redefined),
    (3, make_block),
    (4, _output),
    (3, make_change),
    (3, make_references),
)


class CopyBatches(Generator):
    """COPY FROM STDIN around every limit of copyfrom.c and of resource owners, right and wrong."""

    name: ClassVar[str] = "copy_batches"
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

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a scene of one to three tables, perhaps a view, and 10 to about `scale.queries` + 10 steps more."""
        scope, scene = _scene(rng, Scope(scale))
        steps: tuple[Step, ...] = ()
        wanted = between(rng, FEWEST_STEPS, FEWEST_STEPS + scale.queries)
        while len(steps) < wanted:
            table = pick(rng, scope.tables)
            made, scope = ACTS.pick(rng)(rng, scope, table)
            steps += made
        steps += tuple(make_check(rng, scope, table) for table in scope.tables)
        return Case(self.name, (*needed(scene + steps), *scene), steps)


def _scene(rng: random.Random, scope: Scope) -> tuple[Scope, tuple[Step, ...]]:
    steps: tuple[Step, ...] = ()
    tables: tuple[Table, ...] = ()
    for number in range(TABLES.pick(rng)):
        if chance(rng, 5):
            table, made = make_foreign(rng, f"t{number}")
        else:
            table, made = _local(rng, scope, f"t{number}")
        tables, steps = (*tables, table), steps + made
        if chance(rng, 15):
            fixed, view, made = make_view(rng, table, f"v{number}")
            tables, steps = (*tables[:-1], fixed, view), steps + made
    loop = loopback.PROLOGUE if any(table.remote for table in tables) else ()
    alone = LONE_BUILDS if any(table.leaves > 1 for table in tables) else ()
    return Scope(scope.scale, tables), (*map(Step, (*alone, *loop)), *steps)


def _local(rng: random.Random, scope: Scope, name: str) -> tuple[Table, tuple[Step, ...]]:
    table, steps = make_table(rng, scope, name)
    if not chance(rng, 15 if table.leaves >= MANY_PARTITIONS else 45):  # many triggers keep COPY from batching
        return table, steps
    table, triggers = make_triggers(rng, table)
    return table, steps + triggers
