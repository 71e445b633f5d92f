"""Changes of the first table by joins with other tables. They move rows to other partitions."""

import random
from collections.abc import Callable

from fuzz.generators.choices import Weighted, between, chance, pick
from fuzz.generators.merged_bounds.scene import Scene, Table
from oracles.model.case import Step


def move(rng: random.Random, scene: Scene) -> Step:
    """Return a step that changes rows of the first table."""
    return Step(_CHANGES.pick(rng)(rng, scene.tables[0], pick(rng, scene.tables[1:])))


def _moved(rng: random.Random, table: Table) -> str:
    """Return the assignments that give a row the keys of another row.

    The new keys depend on the row alone, because it may have several partners.
    """
    if not table.points:
        return "i2 = t.i2 + 1"
    by = between(rng, 1, 9)
    return ", ".join(f"{key.name} = {table.value(n, f't.i1 + {by}')}" for n, key in enumerate(table.keys))


def _equal(ours: Table, other: Table) -> str:
    pairs = zip(ours.keys, other.keys, strict=True)
    return " AND ".join(f"{a.sql.replace('@', 't.')} = {b.sql.replace('@', 's.')}" for a, b in pairs)


def _some(rng: random.Random) -> str:
    return f"t.i1 % {pick(rng, (3, 5, 2))} = {rng.randrange(2)}"


def _update(rng: random.Random, table: Table, other: Table) -> str:
    return (
        f"UPDATE {table.name} AS t SET {_moved(rng, table)} FROM {other.name} AS s "
        f"WHERE {_equal(table, other)} AND {_some(rng)}"
    )


def _update_matched(rng: random.Random, table: Table, other: Table) -> str:
    negation = pick(rng, ("", "NOT "))
    return (
        f"UPDATE {table.name} AS t SET {_moved(rng, table)} "
        f"WHERE {negation}EXISTS (SELECT FROM {other.name} AS s WHERE {_equal(table, other)}) AND {_some(rng)}"
    )


def _delete(rng: random.Random, table: Table, other: Table) -> str:
    condition = f"{_equal(table, other)} AND t.i2 = {rng.randrange(5)}"
    return f"DELETE FROM {table.name} AS t USING {other.name} AS s WHERE {condition}"


def _merge(rng: random.Random, table: Table, other: Table) -> str:
    """Return a MERGE with at most one partner of each row."""
    keys = ", ".join(key.name for key in other.keys)
    source = other.name if other.fan == 1 else f"(SELECT DISTINCT {keys} FROM {other.name})"
    by_source = "WHEN NOT MATCHED BY SOURCE AND t.i2 = 3 THEN UPDATE SET i2 = t.i2 + 1"
    clauses = [
        f"WHEN MATCHED AND {_some(rng)} THEN UPDATE SET {_moved(rng, table)}",
        "WHEN MATCHED AND t.i2 = 4 THEN DELETE",
        *([by_source] if chance(rng, 50) else []),
    ]
    return f"MERGE INTO {table.name} AS t USING {source} AS s ON {_equal(table, other)} {' '.join(clauses)}"


_CHANGES: Weighted[Callable[[random.Random, Table, Table], str]] = Weighted(
    (40, _update), (25, _update_matched), (15, _delete), (20, _merge)
)
