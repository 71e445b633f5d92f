"""Immutable scopes: the relations and parameters that an expression may reference at one level of a query.

Scopes carry upper bounds of rows, so that no result grows too large. The `fan` of a column is the maximum number of
rows with one value. A join on that column multiplies the rows by at most its fan.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, Self

from fuzz.generators.sql.sqltypes import Type

if TYPE_CHECKING:  # type variables have defaults since Python 3.13
    from typing_extensions import TypeVar

    T = TypeVar("T", default=Type)  # the description of types: the generators' own, or that of an arm's catalogs
else:
    from typing import TypeVar

    T = TypeVar("T")

WIDE_ROWS = 4_000  # upper bound of rows for output of long text
MANY = 1 << 30  # the fan of a column whose values are unknown


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column, a partition key expression or a parameter. In the `sql` of a `RowSource`, @ stands for the relation."""

    sql: str
    name: str  # a generator's columns of equal names have types of one family; empty for an expression
    type: T
    fan: int = MANY
    domain: int = 0  # approximate maximum of the embedded integers, which start at 0
    nullable: bool = False
    wide: bool = False  # long text, output only as a digest
    hints: tuple[int, ...] = ()  # special integers, such as partition bounds
    collation: str = ""  # declared, other than the type's

    @property
    def family(self: "Column[Type]") -> str:
        """Return the family of the type."""
        return self.type.family

    def written(self, sql: str) -> "Column[T]":
        """Return the column with other SQL. Joins do this for most of the time of a case, and `replace` is slower."""
        return Column(
            sql,
            self.name,
            self.type,
            self.fan,
            self.domain,
            self.nullable,
            self.wide,
            self.hints,
            self.collation,
        )


def under(alias: str, columns: Sequence[Column[T]]) -> tuple[Column[T], ...]:
    """Return the output columns of a FROM item."""
    return tuple(column.written(f"{alias}.{column.name}") for column in columns)


def names(columns: Sequence[Column[T]]) -> str:
    """Return a list of column names as SQL."""
    return ", ".join(column.name for column in columns)


@dataclass(frozen=True, slots=True)
class RowSource(Generic[T]):
    """A named source of rows: a table, or a common table expression."""

    name: str
    columns: tuple[Column[T], ...]
    rows: int
    keys: tuple[Column[T], ...] = ()  # partition keys: columns or expressions
    partitions: tuple[str, ...] = ()  # names of leaf partitions
    stored: bool = True  # whether it is a table, which has a tableoid

    def relation(self, alias: str) -> "Relation[T]":
        """Return the source as a FROM item."""
        keys = tuple(key.written(key.sql.replace("@", f"{alias}.")) for key in self.keys)
        columns = under(alias, self.columns)
        return Relation(f"{self.name} AS {alias}", alias, columns, self.rows, keys, self.stored)


@dataclass(frozen=True, slots=True)
class Relation(Generic[T]):
    """A FROM item with its alias."""

    sql: str
    alias: str
    columns: tuple[Column[T], ...]
    rows: int
    keys: tuple[Column[T], ...] = ()
    stored: bool = False
    read: int = 0  # rows read by one scan, if more than it returns

    @property
    def cost(self) -> int:
        """Return an upper bound of the rows that one scan reads."""
        return max(self.rows, self.read)

    def named(self, name: str) -> Column[T] | None:
        """Return the column of that name, or None."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True)
class Scope(Generic[T]):
    """The names usable at one level of a query: sources for FROM, relations in FROM, and parameters."""

    sources: tuple[RowSource[T], ...]
    relations: tuple[Relation[T], ...] = ()
    outer: tuple[Relation[T], ...] = ()  # relations of outer levels; references to them correlate
    params: tuple[Column[T], ...] = ()
    level: int = 0
    rows: int = 1  # upper bound of the evaluations of an expression

    def over(self, relations: tuple[Relation[T], ...], rows: int) -> Self:
        """Return the scope of a select list or WHERE clause over these relations."""
        return replace(self, relations=relations, rows=rows)

    def inner(self) -> Self:
        """Return the scope of a subquery, which can reference the relations of this level."""
        return replace(self, relations=(), outer=self.outer + self.relations, level=self.level + 1)

    def with_sources(self, sources: tuple[RowSource[T], ...]) -> Self:
        """Return the scope after a WITH clause."""
        return replace(self, sources=self.sources + sources)

    def alias(self, index: int) -> str:
        """Return an alias that no outer level uses."""
        return f"{'abcdefghijk'[self.level]}{index + 1}"

    def of_family(self: "Scope[Type]", family: str) -> list[Column[Type]]:
        """Return this level's columns of a family, including partition key expressions.

        Long text is left out beyond `WIDE_ROWS` rows.
        """
        return [
            column
            for relation in self.relations
            for column in relation.columns + relation.keys
            if column.family == family and not (column.wide and self.rows > WIDE_ROWS)
        ]

    def wide_columns(self: "Scope[Type]") -> list[Column[Type]]:
        """Return this level's columns of long text, or none beyond `WIDE_ROWS` rows."""
        return [column for column in self.of_family("text") if column.wide]
