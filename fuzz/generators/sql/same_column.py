"""Several conditions on one column: arrays of keys beside comparisons, with operands of any type of a family.

A btree scan reduces such conditions to few keys before it begins, and compares values of two types for that.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from fuzz.generators.choices import Weighted, between, chance, pick, shuffled

_FIRST_DAY: Final = date(2024, 1, 1)


@dataclass(frozen=True, slots=True)
class Family:
    """Types whose values btree compares with each other."""

    # By type: functions from a number to the text of a value. The first returns the column's value of the number. Most
    # others return values outside of the range or precision of a narrower type.
    values: Mapping[str, tuple[Callable[[int], str], ...]]

    @property
    def types(self) -> tuple[str, ...]:
        """Return the types of columns and operands."""
        return tuple(self.values)


def _shifted(*offsets: int) -> tuple[Callable[[int], str], ...]:
    return tuple(lambda n, offset=offset: str(n + offset) for offset in offsets)


def _fixed(*texts: str) -> tuple[Callable[[int], str], ...]:
    return tuple(lambda n, text=text: text for text in texts)


def _day(n: int) -> str:
    return f"{_FIRST_DAY + timedelta(days=n)}"


_INTEGERS: Final = (*_shifted(0, 1 << 16, -(1 << 16)), *_fixed("32768", "-32769"))
_TIMES: Final = (
    *(lambda n: f"{_day(n)} 00:00", lambda n: f"{_day(n)} 12:30", lambda n: f"{_day(n)} 23:59:59.999999"),
    *_fixed("infinity", "-infinity", "0001-01-01 BC", "294276-12-31"),
)
_FRACTIONS: Final = (*(lambda n: f"{n / 10}", lambda n: f"{n}.0000001"), *_fixed("NaN", "Infinity", "-Infinity", "-0"))

INTEGERS: Final = Family(
    {
        "int4": (*_INTEGERS, *_fixed("2147483647", "-2147483648")),
        "int8": (*_INTEGERS, *_shifted(1 << 32, -(1 << 32), 1 << 31), *_fixed(str((1 << 63) - 1), str(-1 << 63))),
        "int2": (*_shifted(0), *_fixed("32767", "-32768")),
    }
)
DATES: Final = Family(  # numbers are days since the first one of 2024
    {"date": (_day, *_fixed("infinity", "-infinity")), "timestamp": _TIMES, "timestamptz": _TIMES}
)
FLOATS: Final = Family(  # numbers are tenths
    {"float8": (*_FRACTIONS, *_fixed("1e300", "-1e300", "1e-300")), "float4": _FRACTIONS}
)


def texts(width: int) -> Family:
    """Return text and name. Numbers have `width` digits after the letter v."""
    words = (lambda n: f"v{n:0{width}}", lambda n: f"v{n:0{width}}~", *_fixed("", "v"))
    return Family({"text": (*words, lambda n: f"v{n:099}"), "name": words})


_OPERATORS: Final = Weighted((24, "<"), (22, ">="), (18, "="), (18, "<="), (18, ">"))
_ARRAY: Final = "array"
_SCALAR: Final = "scalar"
_PARTS: Final = Weighted(
    (44, (_ARRAY, _SCALAR)),
    (20, (_ARRAY, _ARRAY)),
    (16, (_ARRAY, _SCALAR, _SCALAR)),
    (12, (_SCALAR, _SCALAR)),
    (8, (_ARRAY, _ARRAY, _SCALAR)),
)
_LENGTHS: Final = Weighted((50, 3), (20, 1), (20, 6), (10, 40))


def conditions(rng: random.Random, column: str, family: Family, most: int) -> list[str]:
    """Return two to four conditions on a column, mostly with values of numbers from 0 to `most`."""
    shared = [between(rng, 0, most) for _ in range(5)]  # so that the conditions often have values in common
    made = [
        _array(rng, column, family, shared, most) if part is _ARRAY else _scalar(rng, column, family, shared)
        for part in _PARTS.pick(rng)
    ]
    made += [f"{column} IS NOT NULL"] if chance(rng, 8) else []
    return list(shuffled(rng, made))


def _value(rng: random.Random, family: Family, type_: str, number: int) -> str:
    values = family.values[type_]
    return (pick(rng, values) if chance(rng, 25) else values[0])(number)


def _scalar(rng: random.Random, column: str, family: Family, shared: Sequence[int]) -> str:
    type_ = pick(rng, family.types)
    number = pick(rng, shared) + between(rng, 0, 1)
    return f"{column} {_OPERATORS.pick(rng)} '{_value(rng, family, type_, number)}'::{type_}"


def _array(rng: random.Random, column: str, family: Family, shared: Sequence[int], most: int) -> str:
    """Return an equality with any of an array's values. Some of them repeat, or are NULL."""
    type_, length = pick(rng, family.types), _LENGTHS.pick(rng)
    numbers = [pick(rng, shared) if length < 10 else between(rng, 0, most) for _ in range(length)]
    values = [_value(rng, family, type_, number) for number in numbers]
    null = chance(rng, 15)
    if chance(rng, 40):
        listed = [f"'{value}'::{type_}" for value in values] + ["NULL"] * null
        return f"{column} IN ({', '.join(listed)})"
    elements = ",".join([f'"{value}"' for value in values] + ["NULL"] * null)
    return f"{column} = ANY ('{{{elements}}}'::{type_}[])"
