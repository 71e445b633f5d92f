"""Tables with children: by partitions of each method and depth, by inheritance, behind a foreign server; or with none.

All tables of a case hold the same integers, embedded into the types of their keys, so that joins find matches. A
key k1 occurs once in a table, so no join by it explodes.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from fuzz.generators import loopback
from fuzz.generators.choices import Weighted, between, chance, pick, shuffled
from fuzz.generators.many_partitions.keys import Key
from fuzz.generators.sql.scope import Column, Source
from fuzz.generators.sql.sqltypes import INT4, Type
from oracles.model.case import Step

_SINGLY = 24  # children that are made one statement each, so that a reduction can do without some
_BULK = 128  # that are made by one statement otherwise, so that none takes long


@dataclass(frozen=True, slots=True)
class ChildLayout:
    """How a table has children: tables of one form may be joined child by child."""

    method: str  # RANGE, LIST, HASH, INHERITS, or "" for no children
    children: int
    step: int  # distance of neighbouring keys
    rows: int
    nested: bool = False  # its first child has children in turn

    @property
    def width(self) -> int:
        """Return how many integers a child of ranges has a place for."""
        return self.rows * self.step // self.children + 1


@dataclass(frozen=True, slots=True)
class Parent:
    """A table of a scene; `foreign` are the numbers of the children behind the foreign server."""

    name: str
    form: ChildLayout
    types: tuple[Type, Type]  # of k1, by which it is partitioned, and of k2
    foreign: frozenset[int] = frozenset()
    primary: bool = False  # k1 is a primary key

    @property
    def members(self) -> int:
        """Return how many members it adds to a class that it is in."""
        return 1 + self.form.children + (2 if self.form.nested else 0)

    @property
    def source(self) -> Source:
        """Return the table as expressions see it."""
        rows, top = self.form.rows, max(2, self.form.rows * self.form.step)
        return Source(
            self.name,
            (
                Column("@k1", "k1", self.types[0], 1, top),
                Column("@k2", "k2", self.types[1], 2, top, nullable=True),
                Column("@i2", "i2", INT4, rows // 5 + 1, 5),
                Column("@i3", "i3", INT4, rows, rows),
            ),
            rows,
        )


def draw_parent(rng: random.Random, name: str, key: Key, form: ChildLayout, twin: Parent | None = None) -> Parent:
    """Return a table of the form, some of whose children may be foreign; keys have the type of its twin's."""
    ours = twin.types[0] if twin else pick(rng, key.types)
    foreign: frozenset[int] = frozenset()
    if form.method in ("RANGE", "LIST") and form.children <= _SINGLY and chance(rng, 15):
        foreign = frozenset(n for n in range(form.nested, form.children) if chance(rng, 50))
    primary = not foreign and form.method != "INHERITS" and chance(rng, 50)
    return Parent(name, form, (ours, pick(rng, key.types)), foreign, primary)


def steps_of(rng: random.Random, parent: Parent) -> Iterator[Step]:
    """Yield the steps that make a table with its children, fill, index and analyze it."""
    clause = f" PARTITION BY {parent.form.method} (k1)" if _partitioned(parent) else ""
    yield Step(f"CREATE TABLE {parent.name} ({_declared(parent)}){clause}")
    yield from _inheriting(rng, parent) if parent.form.method == "INHERITS" else _partitions(rng, parent)
    yield from _filled(rng, parent)
    if chance(rng, 40) and not parent.foreign:
        yield Step(f"CREATE INDEX ON {parent.name} ({INDEXED.pick(rng)})")
    if chance(rng, 80):
        yield Step(f"ANALYZE {parent.name}")


INDEXED = Weighted((40, "k1"), (25, "k2"), (15, "k2, k1"), (10, "i2"), (10, "coalesce(i2, 0)"))


def _partitioned(parent: Parent) -> bool:
    return parent.form.method in ("RANGE", "LIST", "HASH")


def _declared(parent: Parent) -> str:
    key = "PRIMARY KEY" if parent.primary else "NOT NULL"
    ours, other = (type_.declaration for type_ in parent.types)
    return f"k1 {ours} {key}, k2 {other}, i2 int4, i3 int4"


def children(parent: Parent) -> list[tuple[str, str]]:
    """Return names and bounds of the partitions of the first level."""
    return [(f"{parent.name}_{n + 1}", bound(parent, n)) for n in range(parent.form.children)]


def bound(parent: Parent, number: int) -> str:
    """Return the bound of a partition."""
    form, type_ = parent.form, parent.types[0]
    if form.method == "HASH":
        return f"FOR VALUES WITH (MODULUS {form.children}, REMAINDER {number})"
    last = number == form.children - 1
    if form.method == "LIST":
        values = range(number, max(number, form.rows) + 1, form.children)  # of keys in order: neighbours are apart
        return "DEFAULT" if last else f"FOR VALUES IN ({', '.join(type_.literal(n * form.step) for n in values)})"
    low = type_.literal(number * form.width) if number else "MINVALUE"
    high = "MAXVALUE" if last else type_.literal((number + 1) * form.width)
    return f"FOR VALUES FROM ({low}) TO ({high})"


def _partitions(rng: random.Random, parent: Parent) -> Iterator[Step]:
    if parent.form.children > _SINGLY:
        yield from _in_bulk(parent)
        return
    for number, (name, its_bound) in enumerate(children(parent)):
        if parent.form.nested and not number:
            yield Step(f"CREATE TABLE {name} PARTITION OF {parent.name} {its_bound} PARTITION BY HASH (k1)")
            for remainder in range(2):
                rest = f"FOR VALUES WITH (MODULUS 2, REMAINDER {remainder})"
                yield Step(f"CREATE TABLE {name}_{remainder + 1} PARTITION OF {name} {rest}")
        elif number in parent.foreign:
            yield Step(f"CREATE TABLE {name}_there ({_declared(parent)})")
            yield Step(loopback.foreign_table(name, f"PARTITION OF {parent.name} {its_bound}", f"{name}_there"))
        elif chance(rng, 10):  # with another layout of columns
            yield Step(f"CREATE TABLE {name} (gone int4, {', '.join(shuffled(rng, _declared(parent).split(', ')))})")
            yield Step(f"ALTER TABLE {name} DROP COLUMN gone")
            yield Step(f"ALTER TABLE {parent.name} ATTACH PARTITION {name} {its_bound}")
        else:
            yield Step(f"CREATE TABLE {name} PARTITION OF {parent.name} {its_bound}")


def _in_bulk(parent: Parent) -> Iterator[Step]:
    """Yield the steps that make very many partitions. Of a list there is one key in each, and a default."""
    form = parent.form
    listed = form.children - (form.method == "LIST")
    name, its_bound = parent.name, _bulk_bound(parent)
    made = f"format('CREATE TABLE {name}_%s PARTITION OF {name} FOR VALUES %s', n + 1, {its_bound})"
    for first in range(0, listed, _BULK):
        numbers = f"{first}..{min(first + _BULK, listed) - 1}"
        yield Step(f"DO $$ BEGIN FOR n IN {numbers} LOOP EXECUTE {made}; END LOOP; END $$")
    if form.method == "LIST":
        yield Step(f"CREATE TABLE {parent.name}_{form.children} PARTITION OF {parent.name} DEFAULT")


def _bulk_bound(parent: Parent) -> str:
    """Return SQL of the bound of the partition with the number n."""
    form, embed = parent.form, parent.types[0].embed
    if form.method == "HASH":
        return f"format('WITH (MODULUS {form.children}, REMAINDER %s)', n)"
    if form.method == "LIST":
        return f"format('IN (%L)', {embed(f'n * {form.step}')})"
    low, high = (f"quote_literal(({embed(f'{at} * {form.width}')})::text)" for at in ("n", "(n + 1)"))
    low, high = (
        f"CASE n WHEN {end} THEN '{word}' ELSE {value} END"
        for end, word, value in ((0, "MINVALUE", low), (form.children - 1, "MAXVALUE", high))
    )
    return f"format('FROM (%s) TO (%s)', {low}, {high})"


def _inheriting(rng: random.Random, parent: Parent) -> Iterator[Step]:
    last = parent.form.children - 1
    for number in range(parent.form.children):
        of = f"{parent.name}_1" if parent.form.nested and number == last > 0 else parent.name
        has_child = parent.form.nested and number == 0 < last  # whose rows are others, and which would inherit a check
        check = "" if has_child else f"CHECK (i3 % {parent.form.children} = {number})"
        more = pick(rng, ("", "", f"more{number} int4", check))
        yield Step(f"CREATE TABLE {parent.name}_{number + 1} ({more}) INHERITS ({of})")


def _filled(rng: random.Random, parent: Parent) -> Iterator[Step]:
    """Yield what inserts the rows: each child of an inheriting table gets its own."""
    form = parent.form
    key = parent.types[0].embed(f"g * {form.step}")
    nulls = pick(rng, ("g % 7 <> 0", "true", "g % 2 <> 0"))
    other = parent.types[1].embed(f"CASE WHEN {nulls} THEN g / {between(rng, 1, 2)} * {form.step} END")
    rows = f"SELECT {key}, {other}, g % 5, g FROM generate_series(0, {form.rows - 1}) AS g"
    if form.method != "INHERITS":
        yield Step(f"INSERT INTO {parent.name} (k1, k2, i2, i3) {rows}")
        return
    for number in range(form.children):
        where = f" WHERE g % {form.children} = {number}"
        yield Step(f"INSERT INTO {parent.name}_{number + 1} (k1, k2, i2, i3) {rows}{where}")
