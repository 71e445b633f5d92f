"""Scene of `many_partitions`: tables with few and with many children, some with equal layouts, and their join keys.

Children are partitions of all methods and depths, inheritance children, or foreign partitions.

All tables of a case hold the same integers, embedded into the types of their keys, so joins find matches. Expressions
over keys preserve this equality. A value of k1 occurs once per table, so joins over k1 do not multiply rows.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fuzz.generators import loopback
from fuzz.generators.choices import Weighted, between, chance, pick, shuffled
from fuzz.generators.generator import Scale
from fuzz.generators.sql.partitions import attached
from fuzz.generators.sql.scope import Column, RowSource
from fuzz.generators.sql.sqltypes import DATE, INT2, INT4, INT8, LARGEST, NUMERIC, TEXT, TIMESTAMP, UUID, VARCHAR, Type
from oracles.model.case import Step

VOLATILE = "same"  # function that returns its argument, although the planner must not rely on that


@dataclass(frozen=True, slots=True)
class Key:
    """A kind of join key: its types, one per table, and expressions in which {} stands for the key."""

    types: tuple[Type, ...]
    forms: tuple[str, ...]
    collation: str = ""  # another collation, under which the same columns form another class

    def form(self, rng: random.Random) -> str:
        """Return an expression for both sides of an equality, mostly the key itself."""
        return pick(rng, self.forms) if chance(rng, 15) else "{}"

    def volatile(self, column_type: Type) -> str:
        """Return a volatile expression that equals the key."""
        return f"{VOLATILE}({{}})::{column_type.name}"

    @property
    def function(self) -> str:
        """Return the statement that creates the volatile function."""
        name = self.types[0].name if len(self.types) == 1 else _WIDEST[self.types[0].family]
        return f"CREATE FUNCTION {VOLATILE}({name}) RETURNS {name} LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN $1; END'"


_WIDEST = {"int": "int8", "text": "text", "date": "timestamp", "numeric": "numeric", "uuid": "uuid"}
_NUMBERS = ("({} % 7)", "abs({})", "({} + 1)", "coalesce({}, -1)")
_TEXTS = ("lower({})", "({} || 'x')", "coalesce({}, '')", "left({}, 5)")

KEYS = Weighted(
    (34, Key((INT4,), _NUMBERS)),
    (26, Key((INT4, INT8, INT2), _NUMBERS)),
    (10, Key((TEXT, VARCHAR), _TEXTS)),
    (8, Key((TEXT,), _TEXTS, '"POSIX"')),
    (8, Key((DATE, TIMESTAMP), ("({} + INTERVAL '1 day')", "coalesce({}, DATE '2024-01-01')"))),
    (8, Key((NUMERIC,), ("({} + 1.0)", "abs({})", "({} * 2)"))),
    (6, Key((UUID,), ("coalesce({}, NULL)", "({}::text)"))),
)


# upper bound of children created by one statement each, so that reduction can drop them one by one
_SINGLE_STATEMENTS = 24
# children per DO block otherwise, so that no statement takes long
_BULK = 128


@dataclass(frozen=True, slots=True)
class ChildLayout:
    """Partitioning or inheritance of a table. Tables of equal layouts may be joined child by child."""

    method: str  # RANGE, LIST, HASH, INHERITS, or "" without children
    children: int
    step: int  # distance between neighboring keys
    rows: int
    nested: bool = False  # whether the first child has children

    @property
    def width(self) -> int:
        """Return the number of integers in one range partition."""
        return self.rows * self.step // self.children + 1


@dataclass(frozen=True, slots=True)
class Parent:
    """A table of a scene. `foreign` contains the numbers of the foreign children."""

    name: str
    form: ChildLayout
    types: tuple[Type, Type]  # types of k1, the partition key, and of k2
    foreign: frozenset[int] = frozenset()
    primary: bool = False  # whether k1 is a primary key

    @property
    def members(self) -> int:
        """Return the number of members that the table adds to an equivalence class."""
        return 1 + self.form.children + (2 if self.form.nested else 0)

    @property
    def source(self) -> RowSource:
        """Return the table as a source for queries."""
        rows, top = self.form.rows, max(2, self.form.rows * self.form.step)
        return RowSource(
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
    """Return a table with children of layout `form`, some of them foreign. Its k1 has the type of k1 of `twin`."""
    ours = twin.types[0] if twin else pick(rng, key.types)
    foreign: frozenset[int] = frozenset()
    if form.method in ("RANGE", "LIST") and form.children <= _SINGLE_STATEMENTS and chance(rng, 15):
        foreign = frozenset(n for n in range(form.nested, form.children) if chance(rng, 50))
    primary = not foreign and form.method != "INHERITS" and chance(rng, 50)
    return Parent(name, form, (ours, pick(rng, key.types)), foreign, primary)


def steps_of(rng: random.Random, parent: Parent) -> Iterator[Step]:
    """Yield the steps that create a table with its children, and fill, index and analyze it."""
    clause = f" PARTITION BY {parent.form.method} (k1)" if _partitioned(parent) else ""
    yield Step(f"CREATE TABLE {parent.name} ({_declared(parent)}){clause}")
    yield from _inheriting(rng, parent) if parent.form.method == "INHERITS" else _partitions(rng, parent)
    yield from _filled(rng, parent)
    if parent.primary and not parent.form.method and chance(rng, 60):
        # The planner uses foreign keys of plain tables only, for estimates. A self-join follows this one.
        yield Step(f"ALTER TABLE {parent.name} ADD FOREIGN KEY (k1) REFERENCES {parent.name}")
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
    """Return names and bounds of the partitions on the first level."""
    return [(f"{parent.name}_{n + 1}", bound(parent, n)) for n in range(parent.form.children)]


def bound(parent: Parent, number: int) -> str:
    """Return the bound of a partition."""
    form, type_ = parent.form, parent.types[0]
    if form.method == "HASH":
        return f"FOR VALUES WITH (MODULUS {form.children}, REMAINDER {number})"
    last = number == form.children - 1
    if form.method == "LIST":
        # Neighboring keys are in different partitions.
        values = range(number, max(number, form.rows) + 1, form.children)
        return "DEFAULT" if last else f"FOR VALUES IN ({', '.join(type_.literal(n * form.step) for n in values)})"
    low = type_.literal(number * form.width) if number else "MINVALUE"
    high = "MAXVALUE" if last else type_.literal((number + 1) * form.width)
    return f"FOR VALUES FROM ({low}) TO ({high})"


def _partitions(rng: random.Random, parent: Parent) -> Iterator[Step]:
    if parent.form.children > _SINGLE_STATEMENTS:
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
        elif chance(rng, 10):  # columns in another order
            create = f"CREATE TABLE {name} (gone int4, {', '.join(shuffled(rng, _declared(parent).split(', ')))})"
            yield from map(Step, attached(create, name, parent.name, its_bound))
        else:
            yield Step(f"CREATE TABLE {name} PARTITION OF {parent.name} {its_bound}")


def _in_bulk(parent: Parent) -> Iterator[Step]:
    """Yield the steps that create many partitions. A list partition has one key; the last partition is the default."""
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
    """Return a SQL expression for the bound of partition n."""
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
        # The rows of its child are different, and the child would inherit the check.
        has_child = parent.form.nested and number == 0 < last
        check = "" if has_child else f"CHECK (i3 % {parent.form.children} = {number})"
        more = pick(rng, ("", "", f"more{number} int4", check))
        yield Step(f"CREATE TABLE {parent.name}_{number + 1} ({more}) INHERITS ({of})")


def _filled(rng: random.Random, parent: Parent) -> Iterator[Step]:
    """Yield the steps that insert the rows. Each inheritance child gets its own rows."""
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


# Upper bounds of the children of the largest table.
_MANY = Weighted((40, 5), (20, 12), (20, 40), (12, 150), (5, 500), (3, 1024))
_METHODS = Weighted((40, "RANGE"), (20, "LIST"), (22, "HASH"), (18, "INHERITS"))
_MOST_INHERITING = 24  # upper bound of inheritance children


@dataclass(frozen=True, slots=True)
class Scene:
    """The tables of a case, and the steps that create them. The first table has the most children."""

    key: Key
    parents: tuple[Parent, ...]
    steps: tuple[Step, ...]

    @property
    def plain(self) -> Parent:
        """Return a table without children."""
        return next(parent for parent in self.parents if not parent.form.method)


def draw_scene(rng: random.Random, scale: Scale) -> Scene:
    """Return a scene of three to five tables."""
    key = KEYS.pick(rng)
    rows = between(rng, max(2, scale.rows // 20), max(3, scale.rows // 4))
    many = _form(rng, scale, rows, _MANY.pick(rng))
    large = draw_parent(rng, "r1", key, many)
    twin = draw_parent(rng, "r2", key, many, large)
    others = [replace(many, method="", children=0, nested=False)]
    others += [_form(rng, scale, rows, 6) for _ in range(rng.randrange(3))]
    parents = (large, twin, *(draw_parent(rng, f"r{n}", key, form) for n, form in enumerate(others, 3)))
    made = (step for parent in parents for step in steps_of(rng, parent))
    return Scene(key, parents, (*_prologue(key, parents), *made))


def _form(rng: random.Random, scale: Scale, rows: int, most: int) -> ChildLayout:
    """Return a layout with at most `most` children. Above `_MOST_INHERITING`, it has exactly that many."""
    method = _METHODS.pick(rng)
    most = max(2, min(most, scale.partitions * 90, _MOST_INHERITING if method == "INHERITS" else most))
    children = most if most > _MOST_INHERITING else between(rng, 1, most)
    step = max(1, children // rows)
    if method == "LIST":  # each partition has a key, with or without rows
        step = min(step, LARGEST // children)
    return ChildLayout(method, children, step, rows, nested=children <= _MOST_INHERITING and chance(rng, 20))


def _prologue(key: Key, parents: tuple[Parent, ...]) -> Iterator[Step]:
    yield Step(key.function)
    if any(parent.foreign for parent in parents):
        yield from map(Step, loopback.PROLOGUE)
