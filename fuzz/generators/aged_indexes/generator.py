"""Generator `aged_indexes`: scans of indexes of every method whose table has changed since they were built.

Changes, in transactions or not, leave dead rows, heap-only chains, split and empty pages, pending lists and
unsummarized ranges, also those that are rolled back. Maintenance removes them, partly or entirely, and marks pages as
all-visible before the next change.
"""

import random
from collections.abc import Callable
from typing import ClassVar

from fuzz.generators.aged_indexes.table import Table, condition, create, make_query, make_table
from fuzz.generators.choices import Stream, Weighted, another, begin, between, chance, pick, shuffled
from fuzz.generators.generator import Generator, Scale
from fuzz.generators.sql.predicates import where
from oracles.model.case import Case, Step


def make_ageing(rng: random.Random, table: Table) -> list[Step]:
    """Return one to three changes, transactions or statements of maintenance."""
    steps: list[Step] = []
    for _ in range(between(rng, 1, 3)):
        steps += _AGEING.pick(rng)(rng, table)
    return steps


def _change(rng: random.Random, table: Table) -> list[Step]:
    return [Step(_CHANGES.pick(rng)(rng, table))]


def _delete(rng: random.Random, table: Table) -> str:
    return f"DELETE FROM t{where([_affected(rng, table)])}"


def _update(rng: random.Random, table: Table) -> str:
    low = rng.randrange(table.repeat)
    values = (
        "p = p || 'y'",  # heap-only, because no index has this column
        "k = k",
        "k = k + 1",
        "f = f + 0.25",
        f"t = {table.text(rng)}",
        "d = d + interval '1 day'",
        f"r = int4range({low}, {table.repeat + 5})",
        f"a = a || {low}",
    )
    return f"UPDATE t SET {pick(rng, values)}{where([_affected(rng, table)])}"


def _affected(rng: random.Random, table: Table) -> str:
    """Return the condition for the rows that a statement changes. Adjacent rows leave whole pages empty."""
    first, low = between(rng, 0, table.next_id), rng.randrange(table.repeat)
    conditions = Weighted(
        (25, f"id BETWEEN {first} AND {first + between(rng, 0, table.added)}"),
        (25, f"k BETWEEN {low} AND {low + between(rng, 0, table.repeat)}"),
        (15, f"id % {between(rng, 2, 7)} = 0"),
        (15, f"k = {low}"),
        (15, condition(rng, table, pick(rng, table.indexes).column)),
        (5, "id > 0"),
    )
    return conditions.pick(rng)


def _insert(rng: random.Random, table: Table) -> str:
    first = table.next_id
    table.next_id += between(rng, 1, table.added)
    return table.insert(first, table.next_id - 1)


def _upsert(rng: random.Random, table: Table) -> str:
    if not table.unique:
        return _insert(rng, table)
    first = max(1, table.next_id - between(rng, 0, 20))
    last = table.next_id + between(rng, 0, 5)
    table.next_id = last + 1
    return f"{table.insert(first, last)} ON CONFLICT (id) DO UPDATE SET k = t.k + 1, a = excluded.a"


_CHANGES: Weighted[Callable[[random.Random, Table], str]] = Weighted(
    (36, _delete), (34, _update), (22, _insert), (8, _upsert)
)
_VACUUM = Weighted(
    (35, "VACUUM t"),
    (25, "VACUUM (INDEX_CLEANUP on) t"),
    (8, "VACUUM (INDEX_CLEANUP off) t"),
    (8, "VACUUM (FREEZE) t"),
    (8, "VACUUM (ANALYZE) t"),
    (8, "VACUUM (TRUNCATE off, DISABLE_PAGE_SKIPPING) t"),
    (8, "VACUUM (FULL) t"),
)
_OF_METHOD = {
    "brin": ("brin_summarize_new_values('{}')", "brin_summarize_range('{}', 0)", "brin_desummarize_range('{}', 0)"),
    "gin": ("gin_clean_pending_list('{}')",),
}


def _maintenance(rng: random.Random, table: Table) -> list[Step]:
    index = pick(rng, table.indexes)
    if (calls := _OF_METHOD.get(index.method)) and chance(rng, 50):
        # the results depend on free pages, so they are not returned
        return [Step(f"SELECT count(*) FROM (SELECT {pick(rng, calls).format(index.name)}) AS q")]
    if chance(rng, 20):
        ordered = (i.name for i in table.indexes if i.method in ("btree", "gist") and " WHERE" not in i.options)
        clusters = (f"CLUSTER t USING {name}" for name in ordered)
        return [Step(pick(rng, ("ANALYZE t", f"REINDEX INDEX {index.name}", "REINDEX TABLE t", *clusters)))]
    return [Step(_VACUUM.pick(rng))]


def _in_transaction(rng: random.Random, table: Table) -> list[Step]:
    """Return a transaction that changes and reads the table, and may be rolled back, entirely or to a savepoint."""
    steps = [*_change(rng, table), make_query(rng, table), *_change(rng, table), make_query(rng, table)]
    if chance(rng, 40):
        steps = [Step("SAVEPOINT s"), *steps, Step("ROLLBACK TO s"), make_query(rng, table)]
    return [Step("BEGIN"), *steps, Step(pick(rng, ("COMMIT", "ROLLBACK")))]


def _around_cursor(rng: random.Random, table: Table) -> list[Step]:
    """Return a transaction with a cursor that moves in both directions, and changes of the rows that it returns."""
    index = pick(rng, table.indexes)
    rows = f"SELECT {', '.join(index.columns)} FROM t{where([condition(rng, table, index.column)])}"
    order = ", ".join(shuffled(rng, index.columns))
    steps = [Step("BEGIN"), Step(f"DECLARE c SCROLL CURSOR FOR {rows} ORDER BY {order}")]
    for move in ("FETCH", pick(rng, ("FETCH", "FETCH BACKWARD")), "FETCH BACKWARD"):
        steps += [Step(f"{move} {between(rng, 1, 9)} FROM c", ordered=True), *_change(rng, table)]
    return [*steps, Step("FETCH ALL FROM c", ordered=True), Step(pick(rng, ("COMMIT", "ROLLBACK")))]


_AGEING: Weighted[Callable[[random.Random, Table], list[Step]]] = Weighted(
    (48, _change), (32, _maintenance), (14, _in_transaction), (6, _around_cursor)
)


# Builds of indexes and CLUSTER sort on disk. Before PostgreSQL 17, the least value is 1 MB.
_SMALL_BUILDS = Step("SET maintenance_work_mem = '64kB'", may_fail=True)
_SETTINGS = ("SET enable_seqscan = off", "SET enable_bitmapscan = off", "SET enable_indexonlyscan = off")


class AgedIndexes(Generator):
    """Scans of one table's indexes between changes, rolled back or not, and maintenance."""

    name: ClassVar[str] = "aged_indexes"
    cpu_seconds: ClassVar[float] = 0.6
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "indexes",
        "indexes+loop_only",
        "indexes+small_memory",
        "parallel",
        "parallel+indexes",
        "indexes+extended",
        "indexes+cursor",
        "indexes+closed_early",
    )

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: a table with indexes, then queries between changes and maintenance."""
        table = make_table(rng, scale)
        scene = [
            *([_SMALL_BUILDS] if chance(rng, 40) else ()),
            *create(rng, table, scale),
            *(Step(sql) for sql in _SETTINGS if chance(rng, 20)),
            *(make_ageing(rng, table) if chance(rng, 60) else ()),
        ]
        begin(rng, Stream.ACTION)
        steps, queries = [make_query(rng, table)], 1
        while another(rng, queries, scale.queries):
            steps += make_ageing(rng, table) if chance(rng, 60) else ()
            more = min(between(rng, 1, 3), scale.queries - queries)
            steps += [make_query(rng, table) for _ in range(more)]
            queries += more
        # No sample: what VACUUM can remove, and so the costs of a plan, depend on other sessions of the server.
        return Case(self.name, tuple(scene), tuple(steps), sampled_by_content=False)
