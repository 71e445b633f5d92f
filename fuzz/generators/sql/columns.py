"""Columns and their data: the column templates of a case, and distributions of integers over a table's rows."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from fuzz.generators.choices import Weighted, chance, pick
from fuzz.generators.sql.scope import Column
from fuzz.generators.sql.sqltypes import FAMILIES, TEXT, Type

# Primes, so that products and squares modulo one of them are spread evenly.
_DOMAINS = Weighted((30, 53), (25, 23), (15, 11), (10, 5), (2, 2), (15, 101), (10, 211))


@dataclass(frozen=True, slots=True)
class Spread:
    """A distribution of integers: SQL over the row number g, and an upper bound of the rows with equal values."""

    sql: str
    fan: int


@dataclass(frozen=True, slots=True)
class ColumnTemplate:
    """A column name and its meaning in one case. All tables use it with one type family and one domain."""

    name: str
    type: Type
    domain: int
    percent: int  # percentage of tables with this column
    serial: bool = False  # whether values are nearly unique

    @property
    def key(self) -> Column:
        """Return the template as a column for partition schemes."""
        return Column(f"@{self.name}", self.name, self.type, 1, max(2, self.domain))


@dataclass(frozen=True, slots=True)
class Content:
    """A column of one table, and the SQL over g that computes its values."""

    column: Column
    value: str
    unique: bool


def column_templates(rng: random.Random, rows: int) -> tuple[ColumnTemplate, ...]:
    """Return a template of each column that tables of a case may have."""

    def template(name: str, family: str, percent: int) -> ColumnTemplate:
        return ColumnTemplate(name, pick(rng, FAMILIES[family]), _DOMAINS.pick(rng), percent)

    return (
        ColumnTemplate("i1", pick(rng, FAMILIES["int"]), rows, 100, serial=True),
        template("i2", "int", 100),
        template("i3", "int", 60),
        template("t1", "text", 60),
        template("t2", "text", 25),
        template("d1", "date", 30),
        template("n1", "numeric", 35),
        template("u1", "uuid", 15),
        template("b1", "bool", 20),
        ColumnTemplate("w1", TEXT, rows, 85),
    )


def content(rng: random.Random, template: ColumnTemplate, rows: int, *, exact: bool) -> Content:
    """Return a column for a table of `rows` rows; with `exact`, it has the template's own type."""
    if template.name == "w1":
        return _wide(rng, rows)
    type_ = template.type if exact or chance(rng, 85) else pick(rng, FAMILIES[template.type.family])
    spread = _SERIAL.pick(rng)(rng, rows, rows) if template.serial else _SPREADS.pick(rng)(rng, rows, template.domain)
    unique = template.serial and spread.fan == 1
    sql, nullable = spread.sql, chance(rng, 15 if template.serial else 40)
    if nullable:
        nth = pick(rng, (11, 4, 29, 2, 1))
        sql = "NULL::int4" if nth == 1 else f"CASE WHEN g % {nth} <> {nth - 1} THEN {sql} END"
    domain = 2 if type_.family == "bool" else max(template.domain, 2)
    fan = max(spread.fan, rows // 2 + 1) if type_.family == "bool" else spread.fan
    column = Column(f"@{template.name}", template.name, type_, fan, domain, nullable=nullable)
    return Content(column, type_.embed(sql), unique and not nullable)


def _wide(rng: random.Random, rows: int) -> Content:
    """Return a column of long text, which exceeds a small work_mem; values beyond 2 kB are compressed."""
    times = pick(rng, (30, 50, 40, 20, 90))
    column = Column("@w1", "w1", TEXT, rows, rows, nullable=True, wide=True)
    return Content(column, f"repeat(md5(g::text), {times} - g % 3)", unique=False)


def _row_number(rng: random.Random, rows: int, domain: int) -> Spread:
    return Spread("g", 1)


def _modulo(rng: random.Random, rows: int, domain: int) -> Spread:
    return Spread(f"g % {domain}", rows // domain + 1)


def _scattered(rng: random.Random, rows: int, domain: int) -> Spread:
    factor = pick(rng, (7, 13, 31))
    return Spread(f"g * {factor} % {domain}", rows // domain + 1)


def _squares(rng: random.Random, rows: int, domain: int) -> Spread:
    return Spread(f"g * g % {domain}", 2 * (rows // domain + 1))


def _stairs(rng: random.Random, rows: int, domain: int) -> Spread:
    width = rows // domain + 1
    return Spread(f"g / {width}", width)


def _hot(rng: random.Random, rows: int, domain: int) -> Spread:
    nth = pick(rng, (5, 2, 20))
    value = rng.randrange(max(1, domain))
    return Spread(f"CASE WHEN g % {nth} = 0 THEN g % {domain} ELSE {value} END", rows)


def _constant(rng: random.Random, rows: int, domain: int) -> Spread:
    return Spread(str(rng.randrange(max(1, domain))), rows)


def _doubled(rng: random.Random, rows: int, domain: int) -> Spread:
    return Spread("g / 2", 2)


_Maker = Callable[[random.Random, int, int], Spread]
_SPREADS: Weighted[_Maker] = Weighted(
    (30, _modulo), (25, _scattered), (10, _squares), (10, _stairs), (10, _hot), (2, _constant)
)
_SERIAL: Weighted[_Maker] = Weighted((70, _row_number), (15, _doubled), (15, _hot))
