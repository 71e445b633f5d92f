"""Scope: what an expression may refer to. Immutable, extended for each level of a query.

Row counts travel with it as upper bounds, so that no statement explodes: `fan` is how many rows of a relation
may hold one value of a column, and a join on that column multiplies by at most that.
"""

from dataclasses import dataclass, replace

from fuzz.generators.sql.sqltypes import Type

WIDE_ROWS = 4_000  # that may each carry long text


@dataclass(frozen=True, slots=True)
class Expr:
    """SQL of a value, safe to use as an operand; `type` is exact for columns, and right up to its family else."""

    sql: str
    type: Type


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or an expression that a table is partitioned by. In a Source's `sql`, @ stands for the relation."""

    sql: str
    name: str  # columns of one name have types of one family in all tables; empty for an expression
    type: Type
    fan: int
    domain: int  # its values embed integers from 0 to about here
    nullable: bool = False
    wide: bool = False  # long text: shown as a digest only
    hints: tuple[int, ...] = ()  # integers at which something happens: partition bounds

    @property
    def family(self) -> str:
        """Return the family of the type."""
        return self.type.family

    def expr(self) -> Expr:
        """Return the column as an expression."""
        return Expr(self.sql, self.type)


@dataclass(frozen=True, slots=True)
class Source:
    """What a relation can be made of by name: a table, or a common table expression."""

    name: str
    columns: tuple[Column, ...]
    rows: int
    keys: tuple[Column, ...] = ()  # what it is partitioned by: columns or expressions
    partitions: tuple[str, ...] = ()  # tables that are its leaves
    stored: bool = True  # a table, so that it has a tableoid

    def relation(self, alias: str) -> "Relation":
        """Return the source as an item of FROM."""
        return Relation(
            f"{self.name} AS {alias}",
            alias,
            tuple(_of(column, alias) for column in self.columns),
            self.rows,
            tuple(_of(key, alias) for key in self.keys),
            self.stored,
        )


def _of(column: Column, alias: str) -> Column:
    return replace(column, sql=column.sql.replace("@", f"{alias}."))


@dataclass(frozen=True, slots=True)
class Relation:
    """An item of FROM, under its alias."""

    sql: str
    alias: str
    columns: tuple[Column, ...]
    rows: int
    keys: tuple[Column, ...] = ()
    stored: bool = False
    read: int = 0  # rows that it reads to return its own, where these are more

    @property
    def cost(self) -> int:
        """Return how many rows one scan of it touches, at most."""
        return max(self.rows, self.read)

    def named(self, name: str) -> Column | None:
        """Return the column of that name."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True)
class Scope:
    """What may be used at one level of a query: sources for FROM, relations that are there, parameters."""

    sources: tuple[Source, ...]
    relations: tuple[Relation, ...] = ()
    outer: tuple[Relation, ...] = ()  # of the levels around: a reference correlates
    params: tuple[Expr, ...] = ()
    level: int = 0
    rows: int = 1  # how often an expression is evaluated, at most

    def over(self, relations: tuple[Relation, ...], rows: int) -> "Scope":
        """Return the scope of a select list or WHERE over these relations."""
        return replace(self, relations=relations, rows=rows)

    def inner(self, *, correlated: bool = True) -> "Scope":
        """Return the scope of a subquery, which sees this level's relations if it may be correlated."""
        outer = self.outer + self.relations if correlated else ()
        return replace(self, relations=(), outer=outer, level=self.level + 1)

    def with_sources(self, sources: tuple[Source, ...]) -> "Scope":
        """Return the scope after WITH."""
        return replace(self, sources=self.sources + sources)

    def alias(self, index: int) -> str:
        """Return an alias that no level around uses."""
        return f"{'abcdefgh'[self.level]}{index + 1}"

    def columns(self, family: str) -> list[Column]:
        """Return this level's columns of a family, partition key expressions included."""
        return [
            column
            for relation in self.relations
            for column in relation.columns + relation.keys
            if column.type.family == family and not (column.wide and self.rows > WIDE_ROWS)
        ]

    def wide_columns(self) -> list[Column]:
        """Return this level's columns of long text, unless there would be megabytes of them."""
        return [column for column in self.columns("text") if column.wide]
