"""Sides of a join: tables, and subqueries over them whose rows or widths the planner misjudges."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from fuzz.generators.choices import Weighted, between, pick
from fuzz.generators.hashing.axes import Axes
from fuzz.generators.hashing.scene import key_of
from fuzz.generators.relational.items import derived, listed
from fuzz.generators.relational.predicates import predicate, where
from fuzz.generators.relational.scope import Column, Relation, Scope
from fuzz.generators.relational.sqltypes import TEXT

_TABLES_FILL = 256  # kB
_MOST_FILLED = 1_000_000  # bytes, of as many rows as an outgrown table has
_LONGEST = 400  # times 32 bytes: a row longer than that would cost more time than it is worth


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a join: its SQL, its relations, and upper bounds of its rows and of those that share a key."""

    sql: str
    relations: tuple[Relation, ...]
    rows: int
    fan: int
    kinds: tuple[str, ...] = ()


def side_of(rng: random.Random, axes: Axes, relation: Relation) -> Side:
    """Return a side of one relation: as it is, or within a subquery."""
    made = _makers(axes).pick(rng)(rng, axes, relation)
    return Side(made.sql, (made,), made.rows, key_of(made.columns).fan)


def _table(rng: random.Random, axes: Axes, relation: Relation) -> Relation:
    return relation


def _subquery(relation: Relation, columns: tuple[Column, ...], conditions: list[str]) -> Relation:
    """Return a subquery that is not pulled up, so that what it computes is carried through joins above it."""
    body = f"SELECT {listed(columns)} FROM {relation.sql}{where(conditions)} OFFSET 0"
    return derived(relation.alias, body, columns, relation.rows)


def _misjudged(rng: random.Random, axes: Axes, relation: Relation) -> Relation:
    """Return more rows than the planner expects: by conditions that imply each other, or that it knows nothing of."""
    numbers = {name: column.sql for name in ("i1", "i2", "i3") if (column := relation.named(name))}
    condition = pick(
        rng,
        (
            "{i2} * 2 % 2 = 0",
            "{i1} / 1 <= {i1} % 10000",
            "{i2} < 8 AND {i3} < 2 AND {i2} / 4 < 2",
            "{i3} = {i2} / 4",
            "coalesce({i1}, 1) + {i2} = coalesce({i1}, 1) + {i2}",
        ),
    )
    return _subquery(relation, relation.columns, [condition.format(**numbers)])


def _widened(rng: random.Random, axes: Axes, relation: Relation) -> Relation:
    """Return rows with a text whose width the planner does not know, which fills memory once or twice if it can."""
    if relation.named("w2"):
        return relation
    filled = min(axes.memory.bytes, _MOST_FILLED) if axes.sized else axes.memory.bytes
    times = filled * between(rng, 3, 6) // 3 // (32 * max(1, relation.rows)) + 1
    times = times if times <= _LONGEST else 9
    wide = Column(f"repeat(md5({relation.alias}.i1::text), {times})", "w2", TEXT, relation.rows, 0, wide=True)
    return _subquery(relation, (*relation.columns[:5], wide), [])


def _pulled_up(relation: Relation, condition: str) -> Relation:
    """Return some of the rows, by a subquery that leaves no trace in the plan."""
    body = f"SELECT {listed(relation.columns)} FROM {relation.sql} WHERE {condition}"
    return derived(relation.alias, body, relation.columns, relation.rows)


def _restricted(rng: random.Random, axes: Axes, relation: Relation) -> Relation:
    return _pulled_up(relation, predicate(rng, Scope(()).over((relation,), relation.rows)))


def _halting(rng: random.Random, axes: Axes, relation: Relation) -> Relation:
    """Return rows some of which take a while to read, so that processes which read them together take turns."""
    return _slow(relation, "i2", between(rng, 0, 19), "0.0005")


def _stuck(rng: random.Random, axes: Axes, relation: Relation) -> Relation:
    """Return rows one of which takes long to read, so that one process is late with the rest of the first page.

    The others have read all other rows by then, even those processes that started late. On the first page are rows
    whose keys are small: that others match, if any does.
    """
    return _slow(relation, "i1", between(rng, 1, 9), "0.03")


def _slow(relation: Relation, name: str, value: int, seconds: str) -> Relation:
    number = relation.named(name)
    assert number is not None
    halt = f"CASE WHEN {number.sql} = {value} THEN pg_sleep({seconds})::text ELSE '' END IS NOT NULL"
    return _pulled_up(relation, halt)


_Maker = Callable[[random.Random, Axes, Relation], Relation]
_ANY: Weighted[_Maker] = Weighted((42, _table), (34, _widened), (18, _misjudged), (6, _restricted))
_HUNGRY: Weighted[_Maker] = Weighted((24, _table), (60, _widened), (10, _misjudged), (6, _restricted))
_PARTIAL: Weighted[_Maker] = Weighted((22, _table), (18, _halting), (52, _stuck), (8, _restricted))
_BARE: Weighted[_Maker] = Weighted((70, _table), (12, _widened), (8, _misjudged), (10, _restricted))


def _makers(axes: Axes) -> Weighted[_Maker]:
    """Return what suits the axes: subqueries hide partitions and hot keys, but tables do not fill much memory.

    Parallel Hash is for what several processes can scan together.
    """
    if axes.pooled:
        return _PARTIAL
    if axes.memory.kilobytes > _TABLES_FILL and not (axes.partitioned or axes.sized):
        return _HUNGRY
    return _BARE if axes.bare else _ANY
