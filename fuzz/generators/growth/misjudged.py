"""Ways to have so many rows of a table, while the planner expects fewer, more, or as many.

A way is SQL of an item of FROM without its alias. All give rows by their number i1, so how many they give is known,
whatever their keys are.
"""

import random
from dataclasses import dataclass, replace

from fuzz.generators.choices import Weighted, between, pick
from fuzz.generators.relational.scope import Source
from fuzz.generators.relational.tables import Table
from oracles.case import Step

PARAMETER = "$1"
_BODY = "'BEGIN RETURN QUERY SELECT * FROM {table} WHERE i1 <= {size}; END'"
_FUNCTION = f"CREATE FUNCTION {{name}}() RETURNS SETOF {{table}} LANGUAGE plpgsql STABLE {{how}} AS {_BODY}"


@dataclass(frozen=True, slots=True)
class Filled:
    """A table that has rows 1 to `last`, of which ANALYZE saw `seen`."""

    table: Table
    last: int
    seen: int


@dataclass(frozen=True, slots=True)
class Grown:
    """A source of `size` rows, what has to be made for it, and tags that say how it misleads the planner."""

    source: Source
    size: int
    steps: tuple[Step, ...]
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Way:
    name: str
    expected: str  # fewer, more, or right: what the planner makes of the number of rows
    item: str
    needs: str = ""
    rows: tuple[int, ...] = (0,)  # that a function claims to return


_OF_TABLE = "(SELECT * FROM {table} WHERE {condition})"
_GROUPS = (
    "(SELECT k1, k2, i1, i2, i3, max(w1) AS w1 FROM {table} WHERE i1 <= {size} AND (i1 - 1) / {divisor} = 0"
    " GROUP BY k1, k2, i1, i2, i3)"
)


def _where(condition: str) -> str:
    return _OF_TABLE.replace("{condition}", condition)


# The planner takes each condition over an expression for one that holds of 0.5 % of the rows, or not of 99.5 %.
_ALWAYS = (
    (14, _Way("counted", "right", _where("i1 <= {size}"))),
    (20, _Way("implied", "fewer", _where("i1 <= {size} AND (i1 - 1) / {divisor} = 0"))),
    (12, _Way("correlated", "fewer", _where("i1 <= {size} AND i2 / 4 = i3 AND i2 % 20 = i2 AND i3 * 4 <= i2"))),
    (8, _Way("few", "fewer", "{name}()", _FUNCTION, (1, 10, 200))),
    (6, _Way("series", "fewer", "(SELECT {values} FROM generate_series(1, (SELECT {size})) AS g)")),
    (8, _Way("groups", "fewer", _GROUPS)),
    (10, _Way("excluded", "more", _where("(i1 - 1) / {rest} <> 0"))),
    (8, _Way("many", "more", "{name}()", _FUNCTION, (20_000, 200_000))),
)
_BEYOND = _Way("beyond", "fewer", _where("i1 > {seen} AND i1 <= {seen} + {size}"))
_WAYS = Weighted(*_ALWAYS)
_WAYS_STALE = Weighted(*_ALWAYS, (30, _BEYOND))  # where statistics end with what ANALYZE saw
_GENERIC = _Way("parameter", "right", _where(f"i1 <= {PARAMETER}::int4"))


def grown(rng: random.Random, filled: Filled, size: int, number: int) -> Grown:
    """Return a source of so many rows of the table: fewer only where the table has not that many."""
    return _made(rng, filled, size, f"grown{number}", (_WAYS_STALE if filled.seen else _WAYS).pick(rng))


def parameterized(rng: random.Random, filled: Filled, size: int) -> Grown:
    """Return a source of as many rows as PARAMETER says: a generic plan expects a third of the table."""
    return _made(rng, filled, size, "", _GENERIC)


def _made(rng: random.Random, filled: Filled, size: int, name: str, way: _Way) -> Grown:
    table = filled.table
    size = min(size, filled.last - filled.seen if way is _BEYOND else filled.last)
    claimed = pick(rng, way.rows)
    places = {
        "name": name,
        "table": table.name,
        "size": size,
        "divisor": max(1, size),
        "seen": filled.seen,
        "rest": max(1, filled.last - size),
        "values": ", ".join(f"{content.value} AS {content.column.name}" for content in table.contents),
        "how": f"PARALLEL SAFE ROWS {max(1, claimed + between(rng, -1, 1))}",
    }
    source = replace(table.source, name=way.item.format(**places), rows=size, keys=(), partitions=(), stored=False)
    steps = (Step(way.needs.format(**places)),) if way.needs else ()
    return Grown(source, size, steps, (f"way.{way.name}", f"expected.{way.expected}"))
