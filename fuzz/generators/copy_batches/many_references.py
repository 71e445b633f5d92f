"""Statements without COPY that hold many references: to portals, plans, relations, tuple descriptors or buffer pins.

The number of references is near the sizes at which a resource owner's array is full and its hash table grows. If each
reference is a scan, partitions, rows and parallel workers are limited, so that no statement takes seconds.
"""

import random
from collections.abc import Callable

from fuzz.generators.choices import Weighted, between, chance, pick
from fuzz.generators.copy_batches.changes import make_check
from fuzz.generators.copy_batches.copy import Requirements, make_copy
from fuzz.generators.copy_batches.table import CopyState, CopyTable, Family, Made
from fuzz.generators.copy_batches.transactions import BEGINS, ENDS, all_may_fail
from oracles.model.case import Kind, Step

COUNTS = Weighted((6, 8), (8, 31), (8, 33), (5, 66), (4, 97), (2, 193), (1, 385))
FEWEST = 5
SCANNED_PARTITIONS = 1_000  # upper bound of the partitions in all scans of a statement
SCANNED_ROWS = 200_000
GATHERED = 33  # upper bound of scans in one statement that may start parallel workers

# Recursive functions of the scene. `sunk` has an exception block in each call; `walked` recurses inside an open loop.
# Only `called` is declared stable. SQL functions stay volatile, so that they are not inlined.
HELPERS = (
    "CREATE FUNCTION sunk(n int4) RETURNS int4 LANGUAGE plpgsql AS $$ BEGIN"
    " IF n <= 0 THEN RETURN 0; END IF; BEGIN RETURN 1 + sunk(n - 1); EXCEPTION WHEN no_data_found THEN RETURN -1; END;"
    " END $$",
    "CREATE FUNCTION called(n int4) RETURNS int8 LANGUAGE plpgsql STABLE AS $$ BEGIN"
    " RETURN CASE WHEN n <= 0 THEN (SELECT count(*) FROM ref) ELSE called(n - 1) + (SELECT min(id) FROM ref) END;"
    " END $$",
    "CREATE FUNCTION walked(n int4) RETURNS int8 LANGUAGE plpgsql AS $$ DECLARE r record; total int8 := 0; BEGIN"
    " IF n <= 0 THEN RETURN 0; END IF;"
    " FOR r IN SELECT id FROM ref ORDER BY id LIMIT 2 LOOP total := total + r.id;"
    " IF r.id = 1 THEN total := total + walked(n - 1); END IF; END LOOP; RETURN total; END $$",
    # A first definition, which the recursive one replaces.
    "CREATE FUNCTION chained(n int4) RETURNS int8 LANGUAGE sql AS 'SELECT 0::int8'",
    "CREATE OR REPLACE FUNCTION chained(n int4) RETURNS int8 LANGUAGE sql AS"
    " $$ SELECT CASE WHEN n <= 0 THEN (SELECT count(*) FROM ref) ELSE chained(n - 1) + 1 END $$",
    "CREATE FUNCTION listed(low int4) RETURNS SETOF ref LANGUAGE sql AS"
    " $$ SELECT * FROM ref WHERE id >= low ORDER BY id $$",
)


def _tagged(sql: str, what: str, count: int, kind: Kind = Kind.COMMAND, *, ordered: bool = False) -> Step:
    return Step(sql, kind, ordered=ordered, tags=("references", f"references.{what}", *_growth(count)))


def _growth(count: int) -> tuple[str, ...]:
    return ("references.over_32",) if count > 32 else ()


def _scans(rng: random.Random, state: CopyState, table: CopyTable) -> int:
    """Return the number of scans of the table that a statement may have."""
    return min(COUNTS.pick(rng), max(FEWEST, min(SCANNED_PARTITIONS // table.leaves, SCANNED_ROWS // state.next_id)))


def _gathered(step: Step, scans: int) -> tuple[Step, ...]:
    """Return the step. If it has more than `GATHERED` scans, parallel workers are disabled around it."""
    if scans <= GATHERED:
        return (step,)
    return Step("SET max_parallel_workers_per_gather = 0"), step, Step("RESET max_parallel_workers_per_gather")


def portals(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a transaction with many open cursors on one table, some FETCHes, a COPY, and perhaps an error."""
    count = _scans(rng, state, table)
    names = f"many_{state.next_name}_"
    query = pick(rng, ("SELECT id, k FROM {0} ORDER BY id", "SELECT id, pad FROM {0}", "SELECT count(*) FROM {0}"))
    opening = (
        f"DO $$ DECLARE c refcursor; r record; BEGIN FOR i IN 1..{count} LOOP c := '{names}' || i;"
        f" OPEN c FOR {query.format(table.name)}; FETCH c INTO r; END LOOP; END $$"
    )
    steps: tuple[Step, ...] = (Step(BEGINS.pick(rng)),)
    inner = chance(rng, 50)
    steps += (Step("SAVEPOINT s1"),) if inner else ()
    steps += (_tagged(opening, "portals", count),)
    ordered = "ORDER" in query
    fetch = "FETCH 3 FROM" if ordered else "MOVE 3 IN"  # without ORDER BY, the first rows depend on the plan
    steps += (Step(f"{fetch} {names}{between(rng, 1, count)}", ordered=ordered),)
    copy, state = make_copy(rng, state.named(), table, Requirements(mistaken=chance(rng, 25)))
    steps += (copy,)
    if copy.may_fail and not inner:
        return (*steps, *all_may_fail((Step(f"CLOSE {names}1"),)), Step("ROLLBACK")), state
    if inner and (copy.may_fail or chance(rng, 40)):
        steps += (Step("ROLLBACK TO s1"),)
    else:
        steps += (Step(f"CLOSE {names}{between(rng, 1, count)}"), Step("CLOSE ALL")) if chance(rng, 50) else ()
    return (*steps, Step(ENDS.pick(rng)), make_check(rng, state, table)), state


def plans(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return many prepared statements of one text. Some are executed before and after an invalidation."""
    count = COUNTS.pick(rng)
    names = f"many_{state.next_name}_"
    text = f"SELECT count(*) FROM {table.name} WHERE k = 1 OR id < $1"
    make = (
        f"DO $$ BEGIN FOR i IN 1..{count} LOOP EXECUTE 'PREPARE {names}' || i || ' (int4) AS {text}'; END LOOP; END $$"
    )
    run = Step(f"EXECUTE {names}{between(rng, 1, count)} (50)")
    steps = (
        _tagged(make, "plans", count),
        run,
        Step("ANALYZE ref"),
        Step("ALTER TABLE ref ALTER COLUMN note SET DEFAULT 'other'"),
        Step(f"EXECUTE {names}{between(rng, 1, count)} (9)"),
        Step("DEALLOCATE ALL"),
    )
    return steps, state.named()


def union(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return one query with many scans of one table. A merge of their sorted outputs holds all pins at once."""
    count = min(_scans(rng, state, table), 200)
    branches = " UNION ALL ".join(f"(SELECT id, k FROM {table.name} ORDER BY id LIMIT 4)" for _ in range(count))
    outer = pick(
        rng,
        (
            "SELECT count(*), sum(id) FROM ({0}) u",
            "SELECT id, count(*) FROM ({0}) u GROUP BY id ORDER BY id",
            "SELECT id FROM ({0}) u ORDER BY id LIMIT 40",
        ),
    )
    step = _tagged(outer.format(branches), "union", count, Kind.QUERY, ordered="ORDER BY id L" in outer)
    return _gathered(step, count), state


def subqueries(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return one query whose output columns are many sub-selects of the same table."""
    count = min(_scans(rng, state, table), 100)
    items = ", ".join(f"(SELECT max(id) + {number} FROM {table.name})" for number in range(count))
    return _gathered(_tagged(f"SELECT {items}", "subqueries", count, Kind.QUERY), count), state


def self_joins(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a self-join of a table over its unique column `id`; each join is a reference to the relation.

    If the planner does not know that `id` is unique, it expects that each join multiplies the rows. It then prepares
    parallel hash joins with as many batches as memory permits, which takes minutes. Such tables get three joined scans.
    """
    known = table.family in (Family.PLAIN, Family.PARTITIONED) and not table.remote
    count = pick(rng, (3, 5, 7)) if known else 3
    analyze = (Step(f"ANALYZE {table.name}"),) if count > 3 else ()
    joins = " ".join(f"JOIN {table.name} t{n} ON t{n}.id = t{n - 1}.id" for n in range(1, count))
    sql = f"SELECT count(*), sum(t{count - 1}.id) FROM {table.name} t0 {joins}"
    return (*analyze, _tagged(sql, "self_joins", count, Kind.QUERY)), state


def recursion(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return a deeply recursive call. Each level holds a subtransaction, snapshot, open loop or plan."""
    count = min(COUNTS.pick(rng), 97)
    function = pick(rng, ("sunk", "called", "walked", "chained"))
    return (_tagged(f"SELECT {function}({count})", f"recursion_{function}", count, Kind.QUERY),), state


def set_functions(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return many scans of a set-returning function that returns a table's row type."""
    count = min(COUNTS.pick(rng), 100)
    calls = " UNION ALL ".join(f"SELECT id, note FROM listed({number % 6})" for number in range(count))
    step = _tagged(f"SELECT count(*), sum(id) FROM ({calls}) u", "set_functions", count, Kind.QUERY)
    return _gathered(step, count), state


def row_values(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return many field accesses of whole-row values, which are references to one tuple descriptor."""
    count = min(COUNTS.pick(rng), 100)
    fields = ", ".join(f"(t).id + {number}" for number in range(count))
    sql = f"SELECT {fields} FROM (SELECT t FROM {table.name} t ORDER BY t.id LIMIT 5 OFFSET 0) q"
    return (_tagged(sql, "row_values", count, Kind.QUERY),), state


def spilling_cursors(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return several open cursors with sorts on disk, which the end of the transaction closes."""
    count = pick(rng, (2, 5, 12))
    opening = (
        f"DO $$ DECLARE c refcursor; r record; BEGIN FOR i IN 1..{count} LOOP c := 'spill_' || i;"
        " OPEN c FOR SELECT g FROM generate_series(1, 2500) g ORDER BY g % 97, g; FETCH c INTO r; END LOOP; END $$"
    )
    steps = (
        Step("BEGIN"),
        Step("SET LOCAL work_mem = '64kB'"),
        _tagged(opening, "files", count),
        Step(f"FETCH 5 FROM spill_{count}", ordered=True),
    )
    copy, state = make_copy(rng, state, table, Requirements(mistaken=chance(rng, 40)))
    return (*steps, copy, Step("ROLLBACK" if copy.may_fail else ENDS.pick(rng))), state


def subtransactions(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return one transaction with many subtransactions, each of which inserts a row. Some are rolled back."""
    count = min(COUNTS.pick(rng), 97)
    body = (
        f"FOR i IN 1..{count} LOOP BEGIN INSERT INTO audit VALUES ('kept', i, 0);"
        " IF i % 4 = 0 THEN RAISE no_data_found; END IF; EXCEPTION WHEN no_data_found THEN NULL; END; END LOOP;"
    )
    copy, state = make_copy(rng, state, table)
    steps = (Step("BEGIN"), _tagged(f"DO $$ BEGIN {body} END $$", "subtransactions", count), copy)
    return (*steps, Step(ENDS.pick(rng)), make_check(rng, state, table)), state


REFERENCES: Weighted[Callable[[random.Random, CopyState, CopyTable], Made]] = Weighted(
    (4, portals),
    (3, plans),
    (4, union),
    (2, subqueries),
    (2, self_joins),
    (4, recursion),
    (2, set_functions),
    (2, row_values),
    (1, spilling_cursors),
    (2, subtransactions),
)


def make_references(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return statements that hold many references."""
    return REFERENCES.pick(rng)(rng, state, table)
