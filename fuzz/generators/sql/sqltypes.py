"""SQL types as embeddings of small integers.

Data, partition bounds and constants are integers from 0 to LARGEST, embedded into a type. So one distribution serves
all types, and constants hit data and bounds. Embeddings keep the order, except for bool.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Final

EPOCH = date(2024, 1, 1)
LARGEST: Final = 9999  # the text form of some types has four digits


@dataclass(frozen=True, slots=True)
class Type:
    """A type. Types of one family are comparable, and share the constructors of expressions."""

    name: str  # as in a cast
    family: str
    declaration: str  # as in CREATE TABLE
    embedding: str  # SQL template; {} is an integer expression
    text: Callable[[int], str]  # returns the text form of the value for n

    def literal(self, n: int) -> str:
        """Return a typed SQL literal for the integer n."""
        if self.family == "int":
            return str(n) if self.name == "int4" else f"{n}::{self.name}"
        return f"'{self.text(n)}'::{self.name}"

    def embed(self, sql: str) -> str:
        """Return SQL that converts an integer expression to this type."""
        return self.embedding.format(sql)

    def collated(self, collation: str) -> "Type":
        """Return the type with another collation, given as a quoted identifier."""
        return replace(self, declaration=self.declaration.replace('"C"', collation))


def _key(n: int) -> str:
    return f"k{n:04d}"


def _half(n: int) -> str:
    # Always one digit. With equal numerics of different scale, min(), DISTINCT and GROUP BY would be ambiguous.
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
# Comparable with date, but in no family below, because most expressions over dates do not accept it.
TIMESTAMP = Type("timestamp", "date", "timestamp", f"TIMESTAMP '{EPOCH}' + ({{}}) * INTERVAL '1 day'", _day)
UUID = Type("uuid", "uuid", "uuid", "lpad(({})::text, 32, '0')::uuid", _uuid)
# A composite type that the scene creates: CREATE TYPE pair AS (a int4, b int4).
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
UNORDERED = ("uuid", "bool", "pair")  # families without min() and max()
