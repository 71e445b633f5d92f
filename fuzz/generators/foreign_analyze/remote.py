"""Remote relations behind foreign tables: tables of all kinds, or views, with skewed values.

About 60 times scale.rows suffice for samples, because the lowest statistics target needs 300 rows. Tables stay too
small for synchronized scans, which may start anywhere. So rows have a fixed order.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from fuzz.generators import loopback
from fuzz.generators.choices import Weighted, between, chance, pick, some
from fuzz.generators.generator import Scale
from fuzz.generators.sql import tables
from fuzz.generators.sql.columns import Content, column_templates
from fuzz.generators.sql.partitions import draw_scheme
from fuzz.generators.sql.scope import Column
from fuzz.generators.sql.sqltypes import TEXT
from fuzz.generators.sql.tables import Table
from oracles.model.case import Step

_BYTES = 4 << 20  # size of a table in bytes, slightly more than half of the threshold of synchronized scans


class RelationKind(StrEnum):
    """Kinds of remote relations."""

    TABLE = "table"
    PARTITIONED = "partitioned"
    INHERITED = "inherited"
    MATERIALIZED = "materialized"
    VIEW = "view"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class RemoteRelation:
    """A remote relation, and the table that stores its rows. The two may be the same."""

    name: str
    kind: RelationKind
    table: Table
    fillfactor: int
    children: int = 0  # number of inheritance children

    @property
    def shape(self) -> str:
        """Return the columns of a foreign table for it."""
        return f"({', '.join(f'{c.column.name} {c.column.type.declaration}' for c in self.table.contents)})"

    @property
    def surely_filled(self) -> bool:
        """Return whether it has rows after any of the actions.

        A partition scheme may accept no row, and a view may filter out all rows.
        """
        return self.table.rows > 100 and self.table.scheme is None and self.kind is not RelationKind.VIEW

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the valid sampling methods. PostgreSQL 17 refuses TABLESAMPLE on foreign tables.

        For a view, methods with TABLESAMPLE are like `random`, so the others come more often.
        """
        if self.kind is RelationKind.FOREIGN:
            return ("off", "random", "auto")
        return (*METHODS, "off", "auto") if self.kind is RelationKind.VIEW else METHODS


METHODS = ("auto", "random", "system", "bernoulli", "off")
_KINDS = Weighted(
    (43, RelationKind.TABLE), (17, RelationKind.PARTITIONED), (8, RelationKind.INHERITED),
    (9, RelationKind.MATERIALIZED), (12, RelationKind.VIEW), (11, RelationKind.FOREIGN),
)  # fmt: skip
_TIMES = Weighted((40, 20), (25, 4), (30, 60), (5, 1))
_WIDTHS = Weighted((60, 0), (25, 40), (10, 300), (5, 1200))
_FILLED = Weighted((50, 100), (35, 10), (15, 40))


def draw_remote(rng: random.Random, name: str, scale: Scale) -> RemoteRelation:
    """Return a remote relation with a few columns; i1 numbers the rows, with possible duplicates."""
    kind, width = _KINDS.pick(rng), _WIDTHS.pick(rng)
    fillfactor = _FILLED.pick(rng) if kind in (RelationKind.TABLE, RelationKind.MATERIALIZED) else 100
    times = _TIMES.pick(rng)
    most = _BYTES * fillfactor // 100 // (width + 120)
    rows = rng.randrange(3) if chance(rng, 5) else between(rng, max(1, scale.rows * times // 4), scale.rows * times)
    number, *others = column_templates(rng, min(rows, most) or 1)
    chosen = some(rng, [template for template in others if template.name != "w1"], 3)
    templates = (number, *(replace(template, percent=100) for template in chosen))
    scheme = None
    if kind is RelationKind.PARTITIONED:
        scheme = draw_scheme(rng, tuple(template.key for template in templates[:2]), max(2, min(scale.partitions, 8)))
    holder = f"{name}_base" if kind in (RelationKind.MATERIALIZED, RelationKind.VIEW, RelationKind.FOREIGN) else name
    table = tables.draw_table(rng, holder, templates, min(rows, most), scheme)
    contents = (*table.contents, _padding(width)) if width else table.contents
    table = replace(table, contents=contents, primary=(), edges=0)  # rows may be inserted twice
    if kind is RelationKind.INHERITED:
        return RemoteRelation(name, kind, table, fillfactor, between(rng, 1, 3))
    return RemoteRelation(name, kind, table, fillfactor)


def _padding(width: int) -> Content:
    column = Column("@pad", "pad", TEXT, 1 << 30, 5)
    return Content(column, f"repeat(chr(97 + g % 5), {width} - g % 7)", unique=False)


def made(rng: random.Random, remote: RemoteRelation) -> Iterator[Step]:
    """Yield the steps that create a remote relation without rows."""
    yield from tables.create(rng, remote.table)
    if remote.fillfactor < 100:
        yield Step(f"ALTER TABLE {remote.table.name} SET (fillfactor = {remote.fillfactor})")
    for number in range(remote.children):
        yield Step(f"CREATE TABLE {remote.name}_{number + 1} () INHERITS ({remote.name})")
    if remote.kind is RelationKind.MATERIALIZED:
        yield Step(f"CREATE MATERIALIZED VIEW {remote.name} AS SELECT * FROM {remote.table.name}")
    if remote.kind is RelationKind.VIEW:
        where = pick(rng, ("i1 % 3 <> 1", "i1 IS NOT NULL", "i1 % 50 = 0"))
        yield Step(f"CREATE VIEW {remote.name} AS SELECT * FROM {remote.table.name} WHERE {where}")
    if remote.kind is RelationKind.FOREIGN:
        yield Step(loopback.foreign_table(remote.name, remote.shape, remote.table.name, "fetch_size '1000'"))
        yield Step(f"GRANT SELECT ON {remote.table.name} TO {loopback.GUEST}")


def filled(remote: RemoteRelation, first: int, last: int) -> Iterator[Step]:
    """Yield the steps that insert rows. An inheritance parent and its children take turns."""
    load = tables.load(remote.table, first, last)
    if not remote.children:
        yield load
        return
    members = (remote.name, *(f"{remote.name}_{number + 1}" for number in range(remote.children)))
    for number, member in enumerate(members):
        into = load.sql.replace(f"INSERT INTO {remote.name} ", f"INSERT INTO {member} ", 1)
        yield Step(f"{into} WHERE g % {len(members)} = {number}")
