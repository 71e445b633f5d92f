"""Bench: a repeated measurement of one table of a mail. One file per bench; `all_benches` finds them."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType
from typing import Any, ClassVar, Self

import psycopg

from fuzz import bench
from fuzz.errors import PgduelError, first_line
from fuzz.servers.arm import Arm
from oracles.model.discovery import instances

Connection = psycopg.Connection[tuple[Any, ...]]
Point = tuple[int, ...]  # a value for each axis, in the order of `Bench.axes`
Samples = Mapping[tuple[Point, str], Sequence[float]]  # (point, arm) -> one measurement per round


class BenchError(PgduelError):
    """A requested measurement that cannot be taken."""


# Settings of each bench's servers: enough memory to keep the tables, and no background work.
UNDISTURBED = MappingProxyType(
    {
        "shared_preload_libraries": "",
        "shared_buffers": "1GB",
        "dynamic_shared_memory_type": "posix",
        "max_wal_size": "8GB",
        "autovacuum": "off",
    }
)


@dataclass(frozen=True, slots=True)
class Mail:
    """The source of a table, and its ratios patched/master.

    `variants` has the ratios of arms with the name of one of several patches that the mail compares. `claim` has the
    mail's result in words, if it has no figures.
    """

    subject: str
    message_id: str
    ratios: Mapping[Point, float]
    variants: Mapping[str, Mapping[Point, float]] = field(default_factory=dict)
    claim: str = ""

    def ratio(self, arm: str, point: Point) -> float | None:
        """Return the mail's ratio of an arm at a point, or None."""
        return self.variants.get(arm, self.ratios).get(point)


SQL_FILE = "give a file of SQL in UTF-8"  # remedy for a file that cannot be read
NO_MAIL = Mail("", "", MappingProxyType({}))


class Bench(ABC):
    """A measurement at each point of a grid, in `unit`. Most repeat a mail's table; `NO_MAIL` marks the others."""

    name: ClassVar[str]
    unit: ClassVar[str]
    axes: ClassVar[Mapping[str, Sequence[int]]]  # name of an axis -> the mail's values
    settings: ClassVar[Mapping[str, str]]  # of the servers
    environment: ClassVar[Mapping[str, str] | None] = None  # of the servers; None: that of the flavor
    mail: ClassVar[Mail] = NO_MAIL
    rounds: ClassVar[int] = 5  # by default
    typical_seconds: ClassVar[float] = 1.5  # of one measurement of a second on two processors, for estimates
    headlines: ClassVar[Sequence[Point]] = ()  # the rows of `bench all --quick`
    beside: ClassVar[Sequence[str]] = ()  # shipped arms that the full table has beside those of `default_arms`

    @classmethod
    def for_headlines(cls) -> Self:
        """Return the bench of the headlines, with less data if it is smaller."""
        return cls()

    @property
    def parameters(self) -> str:
        """Return everything that measurements depend on, except points, arms and settings."""
        return ""

    @abstractmethod
    def label(self, point: Point) -> str:
        """Return the point as text."""

    def data(self, points: Sequence[Point]) -> str:
        """Return everything that `fill` depends on, except the settings."""
        return f"{self.parameters} {points}"

    @abstractmethod
    def fill(self, arm: Arm, points: Sequence[Point]) -> None:
        """Create the points' data in an arm. Other arms may get a copy of its data directory. Raises BenchError."""

    @abstractmethod
    def prepare(self, arm: Arm, points: Sequence[Point]) -> None:
        """Warm a filled arm up, and create what cannot be copied from another arm. Raises BenchError."""

    @abstractmethod
    def measure(self, arm: Arm, point: Point, seconds: int) -> float:
        """Measure one arm at one point for about `seconds`. Raises BenchError."""

    def conditions(self, arm: Arm) -> AbstractContextManager[None]:
        """Return the conditions of an arm's measurements after `prepare`: none by default. Raises ServerError."""
        return nullcontext()

    def extras(self, point: Point, arm: str, against: str, samples: Samples) -> Mapping[str, float]:
        """Return further figures of a point: name of a column -> figure. None by default."""
        return {}

    def points(self, chosen: Mapping[str, Sequence[int]]) -> list[Point]:
        """Return the grid of the chosen values; an axis without choice has the mail's values. Raises BenchError."""
        axes = [sorted(set(chosen.get(name) or values)) for name, values in self.axes.items()]
        if any(value < 1 for values in axes for value in values):
            raise BenchError(f"a value is too small; each of {', '.join(self.axes)} must be at least 1")
        return list(product(*axes))


@contextmanager
def connected(arm: Arm, database: str = "postgres") -> Iterator[Connection]:
    """Open a session on an arm. Raises BenchError for all its errors."""
    try:
        address = arm.cluster.connect_kwargs | {"dbname": database}
        with psycopg.connect(**address, autocommit=True) as connection:  # type: ignore[arg-type]  # host is a str
            yield connection
    except psycopg.Error as error:
        raise BenchError(f"cannot measure arm {arm.name}: {first_line(str(error))}") from error


def all_benches() -> dict[str, Bench]:
    """Return an instance of each bench in this package, by name, sorted."""
    return {found.name: found for found in instances(Bench, bench)}  # type: ignore[type-abstract]
