"""A scene with columns of every family of types: what an arm offers, and types of its own."""

import random
from collections.abc import Iterator
from typing import Final

from fuzz.generators.choices import between, chance, pick, some
from fuzz.sources.composing.datatypes import DataType
from fuzz.sources.composing.offer import Offer
from oracles.case import Step

_TYPES: Final = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'elated')",
    "CREATE DOMAIN natural_number AS int4 CHECK (VALUE >= 0)",
    "CREATE DOMAIN word AS text CHECK (length(VALUE) < 4000)",
    "CREATE TYPE pair AS (n int4, t text)",
    "CREATE TYPE nested AS (p pair, d date, m mood)",
    "CREATE TYPE span AS RANGE (subtype = float8, subtype_diff = float8mi)",
)
# What columns of such types hold in row {}.
_OWN: Final[tuple[tuple[str, str], ...]] = (
    ("mood", "(enum_range(NULL::mood))[1 + {} % 4]"),
    ("natural_number", "({} % 9)"),
    ("word", "chr(97 + {} % 6)"),
    ("pair", "ROW({0} % 5, chr(97 + {0} % 3))::pair"),
    ("nested", "ROW(ROW({0} % 5, 'x'), date '2024-01-01' + {0} % 20, 'ok')::nested"),
    ("span", "span({0} % 7, {0} % 7 + 1.5)"),
    ("mood[]", "enum_range('sad'::mood, (enum_range(NULL::mood))[1 + {} % 4])"),
    ("pair[]", "ARRAY[ROW({0} % 3, 'y')::pair, NULL]"),
)
_FAMILIES: Final = (
    *("bool", "int2", "int4", "int8", "numeric", "float4", "float8", "text", "varchar", "bytea", "date"),
    *("time", "timetz", "timestamp", "timestamptz", "interval", "uuid", "inet", "cidr", "macaddr", "varbit", "json"),
    *("jsonb", "tsvector", "point", "box", "_int4", "_text", "_numeric", "_date", "int4range", "numrange", "daterange"),
    *("tsrange", "int4multirange", "datemultirange", "int4", "text", "jsonb", "numeric", "timestamp", "name", "money"),
)
_TABLES: Final = 3
_COLUMNS: Final = 10


def scene(rng: random.Random, offer: Offer, rows: int) -> tuple[Step, ...]:
    """Return the steps that make and fill some tables of at most so many rows."""
    steps = [Step(sql) for sql in _TYPES]
    keys = [key for key in _FAMILIES if key in offer.types]
    common = some(rng, keys, _COLUMNS // 2)  # of which each table has some, so that tables can be joined
    for n in range(between(rng, 2, _TABLES)):
        chosen = (*some(rng, common, 3), *some(rng, keys, _COLUMNS - 3))
        steps += _table(rng, offer, f"t{n + 1}", [offer.types[key] for key in chosen], between(rng, rows // 4, rows))
    return tuple(steps)


def _table(rng: random.Random, offer: Offer, name: str, types: list[DataType], rows: int) -> Iterator[Step]:
    declared, filled = ["id int4 PRIMARY KEY"], ["g"]
    for n, type_ in enumerate(types):
        collation = f" COLLATE {pick(rng, offer.collations)}" if type_.collated and chance(rng, 50) else ""
        declared.append(f"c{n + 1} {type_.name}{collation}")
        filled.append(_cycle(rng, type_))
    for n, (type_name, sql) in enumerate(some(rng, _OWN, between(rng, 1, 4))):
        declared.append(f"o{n + 1} {type_name}")
        filled.append(f"CASE WHEN g % {pick(rng, (5, 11))} > 0 THEN {sql.format('g')} END")
    partitioned = chance(rng, 20)
    yield Step(f"CREATE TABLE {name} ({', '.join(declared)}){' PARTITION BY HASH (id)' if partitioned else ''}")
    for part in range(3) if partitioned else ():
        yield Step(f"CREATE TABLE {name}_{part} PARTITION OF {name} FOR VALUES WITH (MODULUS 3, REMAINDER {part})")
    yield Step(f"INSERT INTO {name} SELECT {', '.join(filled)} FROM generate_series(1, {rows}) AS g")
    if chance(rng, 70):
        yield Step(f"ANALYZE {name}")


def _cycle(rng: random.Random, type_: DataType) -> str:
    """Return SQL that goes through values of a type, and NULL, as g counts."""
    values = type_.values + (some(rng, type_.edges, 2) if chance(rng, 25) else ())
    cases = " ".join(f"WHEN {n} THEN {value}" for n, value in enumerate(values))
    return f"CASE g * {pick(rng, (1, 3, 7))} % {len(values) + 1} {cases} END"
