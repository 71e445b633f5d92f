"""Partition keys: their types, operator classes and collations, and expressions over a column."""

import random
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property

from fuzz.generators.choices import Weighted, chance, pick
from fuzz.generators.sql.sqltypes import (
    DATE,
    EPOCH,
    INT2,
    INT4,
    INT8,
    NUMERIC,
    PAIR,
    TEXT,
    TIMESTAMP,
    UUID,
    VARCHAR,
    Type,
)

ALL_METHODS = ("RANGE", "LIST", "HASH")
SORTED_METHODS = ("RANGE", "LIST")
IDENTITIES = ("steady", "unsteady")  # functions that return their argument: stable, and volatile

_EMPTY = "CASE WHEN ({{0}}) IS NOT NULL THEN {} END"  # for expressions that are not NULL for NULL


def _instant(n: int) -> str:
    return f"{EPOCH + timedelta(days=n)} 00:00:00+00"


BOOL = Type("bool", "bool", "bool", "(({}) % 2 = 1)", lambda n: "true" if n else "false")
TIMESTAMPTZ = Type(
    "timestamptz", "date", "timestamptz", f"TIMESTAMPTZ '{EPOCH} 00:00:00+00' + ({{}}) * INTERVAL '24 hours'", _instant
)
FLOAT4 = Type("float4", "float", "float4", "(({}) * 0.5)::float4", lambda n: str(n / 2))
FLOAT8 = Type("float8", "float", "float8", "(({}) * 0.5)::float8", lambda n: str(n / 2))
NAME = Type("name", "text", "name", "('k' || lpad(({})::text, 4, '0'))::name", lambda n: f"k{n:04d}")
SHADE = Type("shade", "enum", "shade", "('s' || lpad(({})::text, 2, '0'))::shade", lambda n: f"s{n:02d}")
WHOLE = Type("whole", "whole", "whole", "({})::int4::whole", str)
TRUTH = Type("truth", "bool", "truth", "(({}) % 2 = 1)::truth", BOOL.text)
BYTES = Type("bytea", "bytes", "bytea", "decode(lpad(to_hex(({})::int4), 4, '0'), 'hex')", lambda n: f"\\x{n:04x}")
SPAN = Type(
    "int4range", "span", "int4range", _EMPTY.format("int4range(({0})::int4, ({0})::int4 + 5)"),
    lambda n: f"[{n},{n + 5})",
)  # fmt: skip
INET = Type("inet", "inet", "inet", "INET '10.0.0.0' + ({})", lambda n: f"10.0.0.{n}")
ARRAY = Type(
    "int4[]", "array", "int4[]", _EMPTY.format("ARRAY[({0})::int4 / 5, ({0})::int4 % 5]"),
    lambda n: f"{{{n // 5},{n % 5}}}",
)  # fmt: skip
# Text whose collation ignores case: two neighbouring integers are equal, but differ in case.
_FOLDED = "CASE WHEN ({0}) % 2 = 1 THEN 'K' ELSE 'k' END || lpad((({0}) / 2)::text, 4, '0')"
FOLDED = Type("text", "text", "text COLLATE folded", _FOLDED, lambda n: f"{'kK'[n % 2]}{n // 2:04d}")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of partition key. A form is an expression over {}, with the kind of its result."""

    type: Type
    domain: int = 0  # number of embedded integers, if limited
    step: int = 1  # distance of integers whose values differ
    methods: tuple[str, ...] = ALL_METHODS
    others: tuple[Type, ...] = ()  # types that are compared with it
    opclasses: tuple[str, ...] = ()  # other operator classes than the default one
    collations: tuple[str, ...] = ()  # other collations than that of the column
    forms: tuple[tuple[str, "Kind"], ...] = ()
    setup: tuple[str, ...] = ()  # statements that create the type
    prefixes: bool = False  # whether LIKE applies
    arrays: bool = True  # whether ARRAY[...] of its values is a list of them

    def largest(self, domain: int) -> int:
        """Return the largest integer that is a value, for a column with integers below `domain`."""
        return self.domain - 1 if self.domain else domain + 2


_BOOL = Kind(BOOL, domain=2)
_NUMBER = Kind(INT4, others=(INT8, INT2))
_LONG = Kind(INT8, others=(INT4, INT2))
_REMAINDERS = (("({} % 7)", Kind(INT4, 7, others=(INT8,))), ("({} / 3)", _NUMBER))
_INTEGERS = (
    *_REMAINDERS,
    ("abs({})", _NUMBER),
    ("coalesce({}, 4)", _NUMBER),
    ("({} < 9)", _BOOL),
    ("({} IS NULL)", _BOOL),
)
_OWN_CLASS = (
    "CREATE OPERATOR CLASS own_ops FOR TYPE int4 USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =,"
    " OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int4, int4)",
    "CREATE OPERATOR CLASS own_ops FOR TYPE int4 USING hash AS OPERATOR 1 =,"
    " FUNCTION 1 hashint4(int4), FUNCTION 2 hashint4extended(int4, int8)",
)
_FOLDED_COLLATION = (
    "DO $$ BEGIN CREATE COLLATION folded (PROVIDER = icu, LOCALE = 'und-u-ks-level2', DETERMINISTIC = false);"
    ' EXCEPTION WHEN feature_not_supported THEN CREATE COLLATION folded FROM "C"; END $$'
)
_SHADES = f"CREATE TYPE shade AS ENUM ({', '.join(repr(SHADE.text(n)) for n in range(16))})"
_DAYS = (("({} - DATE '2024-01-01')", _NUMBER),)
_TEXTS = (("lower({})", Kind(TEXT, prefixes=True)), ("left({}, 5)", Kind(TEXT)))

KINDS = Weighted(
    (24, Kind(INT4, others=(INT8, INT2, NUMERIC, FLOAT8), forms=_INTEGERS, opclasses=("own_ops",), setup=_OWN_CLASS)),
    (8, Kind(INT8, others=(INT4, INT2), forms=(("({} % 7)", Kind(INT8, 7)), ("({} < 9)", _BOOL), ("abs({})", _LONG)))),
    (6, Kind(INT2, others=(INT4, INT8), forms=_REMAINDERS)),
    (10, Kind(NUMERIC, others=(INT4, INT8), forms=(("({} < 9)", _BOOL),))),
    (10, Kind(TEXT, others=(NAME,), opclasses=("text_pattern_ops",), collations=('"POSIX"',), forms=_TEXTS,
              prefixes=True)),
    (6, Kind(VARCHAR, others=(TEXT,), opclasses=("varchar_pattern_ops",), prefixes=True)),
    (7, Kind(FOLDED, step=2, setup=(_FOLDED_COLLATION,))),
    (8, Kind(DATE, others=(TIMESTAMP, TIMESTAMPTZ), forms=_DAYS)),
    (6, Kind(TIMESTAMP, others=(DATE, TIMESTAMPTZ), forms=(("({}::date)", Kind(DATE)),))),
    (5, Kind(TIMESTAMPTZ, others=(DATE, TIMESTAMP))),
    (5, Kind(UUID)),
    (6, Kind(SHADE, 16, methods=SORTED_METHODS, setup=(_SHADES,))),  # the hash of an enum depends on OIDs
    (5, Kind(WHOLE, others=(INT4, INT8), setup=("CREATE DOMAIN whole AS int4",), forms=_REMAINDERS)),
    (8, Kind(BOOL, 2, forms=(("(NOT {})", _BOOL),))),
    (2, Kind(TRUTH, 2, setup=("CREATE DOMAIN truth AS bool",))),
    (3, Kind(BYTES)),
    (3, Kind(SPAN, forms=(("lower({})", _NUMBER),))),
    (4, Kind(PAIR, setup=("CREATE TYPE pair AS (a int4, b int4)",), forms=(("(({}).a)", _NUMBER),))),
    (3, Kind(INET)),
    (3, Kind(ARRAY, forms=(("({})[1]", _NUMBER),), arrays=False)),
    (3, Kind(FLOAT8, others=(FLOAT4,))),
    (3, Kind(NAME, others=(TEXT,))),
)  # fmt: skip


@dataclass(frozen=True)
class KeyColumn:
    """A column of all tables of a case that may be part of a partition key."""

    name: str
    kind: Kind
    domain: int  # its integers are less than this, with few exceptions


@dataclass(frozen=True)
class Key:
    """A part of a partition key: a column or an expression over it, and integers near the bounds."""

    column: KeyColumn
    kind: Kind
    form: str = "{}"
    suffix: str = ""  # collation and operator class in PARTITION BY
    collation: str = ""  # other than that of the column
    hints: tuple[int, ...] = field(default=(), compare=False)

    def of(self, prefix: str) -> str:
        """Return the key over columns with this prefix, such as `a.`."""
        return self.form.format(prefix + self.column.name)

    @cached_property
    def clause(self) -> str:
        """Return the key as an item of PARTITION BY."""
        sql = self.of("")
        return (sql if self.form == "{}" else f"({sql})") + self.suffix

    @cached_property
    def compared(self) -> str:
        """Return the key as an operand that the partition's own collation compares."""
        return f"({self.of('')} COLLATE {self.collation})" if self.collation else self.of("")

    @property
    def largest(self) -> int:
        """Return the largest integer that is a value of the key."""
        return self.kind.largest(self.column.domain)

    @property
    def integers(self) -> range:
        """Return integers whose values differ."""
        return range(0, min(self.largest + 1, self.column.domain + 1), self.kind.step)

    def near(self, rng: random.Random) -> int:
        """Return an integer, mostly a bound or its neighbour."""
        if self.hints and chance(rng, 75):
            near = pick(rng, self.hints) + pick(rng, (0, 0, 0, -1, 1))
            return max(0, min(near, self.largest))
        return rng.randrange(self.largest + 1)


def draw_columns(rng: random.Random, count: int) -> tuple[KeyColumn, ...]:
    """Return key columns of random kinds, named k1, k2, ..."""
    drawn = []
    for n in range(1, count + 1):
        kind = KINDS.pick(rng)
        drawn.append(KeyColumn(f"k{n}", kind, kind.domain or _DOMAINS.pick(rng)))
    return tuple(drawn)


_DOMAINS = Weighted((40, 12), (30, 24), (20, 48), (10, 5))


def draw_key(rng: random.Random, column: KeyColumn, method: str) -> Key | None:
    """Return a key over the column, or None if its values have no suitable operator class."""
    kind, form, suffix, collation = column.kind, "{}", "", ""
    if kind.forms and chance(rng, 25):
        form, kind = pick(rng, kind.forms)
    elif kind.collations and chance(rng, 15):
        collation = pick(rng, kind.collations)
        suffix = f" COLLATE {collation}"
    elif kind.opclasses and chance(rng, 15):
        opclass = pick(rng, kind.opclasses)
        suffix = f" {opclass}"
    return Key(column, kind, form, suffix, collation) if method in kind.methods else None
