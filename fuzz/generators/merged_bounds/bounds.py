"""Partition bounds as data: their SQL, the points that they accept, and the values near them.

A point has one integer or None for each key column. A point of a range bound may have `LOW` and `HIGH`, too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from fuzz.generators.sql.sqltypes import Type

Point = tuple[int | None, ...]
Edge = tuple[int, ...]  # a point of a range bound

LOW, HIGH = -1, 10_000  # MINVALUE and MAXVALUE: lower and higher than all values


class Bound(Protocol):
    """The bound of one partition."""

    def sql(self, types: Sequence[Type]) -> str:
        """Return the bound as SQL for keys of these types."""

    def holds(self, point: Point) -> bool:
        """Return whether the partition may accept the point."""

    def marks(self) -> Iterator[Point]:
        """Yield the points that define the bound."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range from `low` inclusive to `high` exclusive."""

    low: Edge
    high: Edge

    def sql(self, types: Sequence[Type]) -> str:
        """Return the bound as SQL for keys of these types."""
        low, high = (
            ", ".join(_EXTREMES.get(n) or type_.literal(n) for n, type_ in zip(edge, types, strict=True))
            for edge in (self.low, self.high)
        )
        return f"FOR VALUES FROM ({low}) TO ({high})"

    def holds(self, point: Point) -> bool:
        """Return whether the range has the point. NULL is in no range."""
        filled = tuple(n for n in point if n is not None)
        return len(filled) == len(point) and self.low <= filled < self.high

    def marks(self) -> Iterator[Point]:
        """Yield both ends."""
        yield from (self.low, self.high)


_EXTREMES = {LOW: "MINVALUE", HIGH: "MAXVALUE"}


@dataclass(frozen=True, slots=True)
class Values:
    """A list of values, of which None is NULL."""

    values: Point

    def sql(self, types: Sequence[Type]) -> str:
        """Return the bound as SQL for keys of these types."""
        return f"FOR VALUES IN ({', '.join('NULL' if n is None else types[0].literal(n) for n in self.values)})"

    def holds(self, point: Point) -> bool:
        """Return whether the list has the value."""
        return point[0] in self.values

    def marks(self) -> Iterator[Point]:
        """Yield each value."""
        yield from ((n,) for n in self.values)


@dataclass(frozen=True, slots=True)
class Remainder:
    """A class of hashes. A table has all classes, so each point fits."""

    modulus: int
    remainder: int

    def sql(self, types: Sequence[Type]) -> str:
        """Return the bound as SQL."""
        return f"FOR VALUES WITH (MODULUS {self.modulus}, REMAINDER {self.remainder})"

    def holds(self, point: Point) -> bool:
        """Return True."""
        return True

    def marks(self) -> Iterator[Point]:
        """Yield nothing."""
        yield from ()


@dataclass(frozen=True, slots=True)
class Rest:
    """The default partition."""

    def sql(self, types: Sequence[Type]) -> str:
        """Return the bound as SQL."""
        return "DEFAULT"

    def holds(self, point: Point) -> bool:
        """Return True, because other partitions are tried first."""
        return True

    def marks(self) -> Iterator[Point]:
        """Yield nothing."""
        yield from ()


@dataclass(frozen=True, slots=True)
class Part:
    """One partition, which may be partitioned."""

    bound: Bound
    sub: "Bounds | None" = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """The partitions of a table or of a partition. The default partition is the last one."""

    method: str
    columns: tuple[int, ...]  # numbers of the key columns
    parts: tuple[Part, ...]

    def fits(self, point: Point) -> bool:
        """Return whether a row with these keys has a partition."""
        own = tuple(point[column] for column in self.columns)
        part = next((part for part in self.parts if part.bound.holds(own)), None)
        return part is not None and (part.sub is None or part.sub.fits(point))

    def marks(self) -> Iterator[dict[int, int | None]]:
        """Yield the points of all bounds, by the number of the column. They have neither `LOW` nor `HIGH`."""
        for part in self.parts:
            for mark in part.bound.marks():
                yield {c: n for c, n in zip(self.columns, mark, strict=True) if n not in _EXTREMES}
            yield from part.sub.marks() if part.sub else ()
