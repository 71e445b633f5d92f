"""SQL types as embeddings of small integers.

Data, partition bounds and constants are drawn as integers and embedded into a type, in order (a bool apart): so
one distribution serves all types, and a constant meets data and bounds. Integers run from 0 to 9999.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta

EPOCH = date(2024, 1, 1)


@dataclass(frozen=True, slots=True)
class Type:
    """A type. Those of one family compare with each other, and share the constructors of expressions."""

    name: str  # as in a cast
    family: str
    declaration: str  # as in CREATE TABLE
    embedding: str  # SQL; {} is an integer expression
    text: Callable[[int], str]  # the value that embeds n, in text form

    def literal(self, n: int) -> str:
        """Return SQL of the value that embeds n, typed."""
        if self.family == "int":
            return str(n) if self.name == "int4" else f"{n}::{self.name}"
        return f"'{self.text(n)}'::{self.name}"

    def embed(self, sql: str) -> str:
        """Return SQL that embeds an integer expression."""
        return self.embedding.format(sql)

    def collated(self, collation: str) -> "Type":
        """Return the type under another collation, whose name is quoted as need be."""
        return replace(self, declaration=self.declaration.replace('"C"', collation))


def _key(n: int) -> str:
    return f"k{n:04d}"


def _half(n: int) -> str:
    # One digit always: equal numerics of different scale would make min(), DISTINCT and GROUP BY ambiguous.
    return f"{n // 2}.{n % 2 * 5}"


def _day(n: int) -> str:
    return str(EPOCH + timedelta(days=n))


def _uuid(n: int) -> str:
    digits = f"{n:032d}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _parity(n: int) -> str:
    return "true" if n % 2 == 0 else "false"


def _pair(n: int) -> str:
    return f"({n // 10},{n % 10})"


_KEY = "'k' || lpad(({})::text, 4, '0')"

INT4 = Type("int4", "int", "int4", "({})::int4", str)
INT8 = Type("int8", "int", "int8", "({})::int8", str)
INT2 = Type("int2", "int", "int2", "({})::int2", str)
NUMERIC = Type("numeric", "numeric", "numeric(10,1)", "({}) * 0.5", _half)
TEXT = Type("text", "text", 'text COLLATE "C"', _KEY, _key)
VARCHAR = Type("varchar", "text", 'varchar(200) COLLATE "C"', _KEY, _key)
DATE = Type("date", "date", "date", f"DATE '{EPOCH}' + ({{}})", _day)
# Compares with a date, but is no other type of it for most expressions, so it is in no family below.
TIMESTAMP = Type("timestamp", "date", "timestamp", f"TIMESTAMP '{EPOCH}' + ({{}}) * INTERVAL '1 day'", _day)
UUID = Type("uuid", "uuid", "uuid", "lpad(({})::text, 32, '0')::uuid", _uuid)
# A composite type that the scene makes: CREATE TYPE pair AS (a int4, b int4).
PAIR = Type("pair", "pair", "pair", "CASE WHEN ({0}) IS NOT NULL THEN ROW(({0}) / 10, ({0}) % 10)::pair END", _pair)
BOOL = Type("bool", "bool", "bool", "(({}) % 2 = 0)", _parity)

FAMILIES: dict[str, tuple[Type, ...]] = {
    "int": (INT4, INT8, INT2),
    "numeric": (NUMERIC,),
    "text": (TEXT, VARCHAR),
    "date": (DATE,),
    "uuid": (UUID,),
    "bool": (BOOL,),
    "pair": (PAIR,),
}
UNORDERED = ("uuid", "bool", "pair")  # families for which there is no min() and max()
