"""Immutable scopes: the relations and parameters that an expression may reference at one level of a query.

Scopes carry upper bounds of rows, so that no result grows too large. The `fan` of a column is the maximum number of
rows with one value. A join on that column multiplies the rows by at most its fan.
"""

from dataclasses import dataclass, replace

from fuzz.generators.sql.sqltypes import Type

WIDE_ROWS = 4_000  # upper bound of rows for output of long text


@dataclass(frozen=True, slots=True)
class Expr:
    """SQL of a value, safe as an operand. For columns, `type` is exact; for other expressions, only its family is."""

    sql: str
    type: Type


@dataclass(frozen=True, slots=True)
class Column:
    """A column or a partition key expression. In the `sql` of a `Source`'s column, @ stands for the relation."""

    sql: str
    name: str  # columns of equal names have types of one family in all tables; empty for an expression
    type: Type
    fan: int
    domain: int  # approximate maximum of the embedded integers, which start at 0
    nullable: bool = False
    wide: bool = False  # long text, output only as a digest
    hints: tuple[int, ...] = ()  # special integers, such as partition bounds

    @property
    def family(self) -> str:
        """Return the family of the type."""
        return self.type.family

    def expr(self) -> Expr:
        """Return the column as an expression."""
        return Expr(self.sql, self.type)


@dataclass(frozen=True, slots=True)
class Source:
    """A named source of rows: a table, or a common table expression."""

    name: str
    columns: tuple[Column, ...]
    rows: int
    keys: tuple[Column, ...] = ()  # partition keys: columns or expressions
    partitions: tuple[str, ...] = ()  # names of leaf partitions
    stored: bool = True  # whether it is a table, which has a tableoid

    def relation(self, alias: str) -> "Relation":
        """Return the source as a FROM item."""
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
    """A FROM item with its alias."""

    sql: str
    alias: str
    columns: tuple[Column, ...]
    rows: int
    keys: tuple[Column, ...] = ()
    stored: bool = False
    read: int = 0  # rows read by one scan, if more than it returns

    @property
    def cost(self) -> int:
        """Return an upper bound of the rows that one scan reads."""
        return max(self.rows, self.read)

    def named(self, name: str) -> Column | None:
        """Return the column of that name, or None."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True)
class Scope:
    """The names usable at one level of a query: sources for FROM, relations in FROM, and parameters."""

    sources: tuple[Source, ...]
    relations: tuple[Relation, ...] = ()
    outer: tuple[Relation, ...] = ()  # relations of outer levels; references to them correlate
    params: tuple[Expr, ...] = ()
    level: int = 0
    rows: int = 1  # upper bound of the evaluations of an expression

    def over(self, relations: tuple[Relation, ...], rows: int) -> "Scope":
        """Return the scope of a select list or WHERE clause over these relations."""
        return replace(self, relations=relations, rows=rows)

    def inner(self, *, correlated: bool = True) -> "Scope":
        """Return the scope of a subquery. It includes this level's relations if `correlated`."""
        outer = self.outer + self.relations if correlated else ()
        return replace(self, relations=(), outer=outer, level=self.level + 1)

    def with_sources(self, sources: tuple[Source, ...]) -> "Scope":
        """Return the scope after a WITH clause."""
        return replace(self, sources=self.sources + sources)

    def alias(self, index: int) -> str:
        """Return an alias that no outer level uses."""
        return f"{'abcdefgh'[self.level]}{index + 1}"

    def columns(self, family: str) -> list[Column]:
        """Return this level's columns of a family, including partition key expressions.

        Long text is left out beyond `WIDE_ROWS` rows.
        """
        return [
            column
            for relation in self.relations
            for column in relation.columns + relation.keys
            if column.type.family == family and not (column.wide and self.rows > WIDE_ROWS)
        ]

    def wide_columns(self) -> list[Column]:
        """Return this level's columns of long text, or none beyond `WIDE_ROWS` rows."""
        return [column for column in self.columns("text") if column.wide]
