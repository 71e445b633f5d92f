"""Scope: what an expression may refer to. Immutable, extended for each level of a query."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from fuzz.sources.typed.catalog import ServerCatalog
from fuzz.sources.typed.datatypes import DataType


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `collation` is one that it was declared with, other than the default. `unique`: it is a key."""

    name: str
    type: DataType
    collation: str = ""
    nullable: bool = True
    unique: bool = False


def numbered(types: Sequence[DataType], letter: str = "c") -> tuple[Column, ...]:
    """Return columns of such types, called c1, c2 and so on."""
    return tuple(Column(f"{letter}{n}", type_) for n, type_ in enumerate(types, start=1))


def under(alias: str, columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return the columns of an item of FROM as its level sees them."""
    return tuple(replace(column, name=f"{alias}.{column.name}") for column in columns)


def names(columns: Sequence[Column]) -> str:
    """Return a list of columns as SQL."""
    return ", ".join(column.name for column in columns)


@dataclass(frozen=True, slots=True)
class Relation:
    """What FROM takes by name: a table or a common table expression."""

    name: str
    columns: tuple[Column, ...]
    rows: int


@dataclass(frozen=True)
class Scope:
    """What one level of a query sees. All of its text that has a collation is brought to the one named here."""

    catalog: ServerCatalog
    relations: tuple[Relation, ...]  # for FROM
    columns: tuple[Column, ...] = ()  # of this level and those around it
    collation: str = '"default"'
    rows: int = 1  # how often an expression is evaluated, about
    level: int = 0

    def over(self, columns: tuple[Column, ...], rows: int) -> "Scope":
        """Return the scope over these columns besides those of the levels around."""
        return replace(self, columns=self.columns + columns, rows=max(1, self.rows * rows))

    def only(self, columns: tuple[Column, ...]) -> "Scope":
        """Return the scope over these columns alone."""
        return replace(self, columns=columns)

    def inner(self) -> "Scope":
        """Return the scope of a subquery, which sees the columns of this level."""
        return replace(self, level=self.level + 1)

    def with_relations(self, relations: tuple[Relation, ...]) -> "Scope":
        """Return the scope after WITH."""
        return replace(self, relations=self.relations + relations)

    def without_relations(self) -> "Scope":
        """Return the scope in which there is nothing for a subquery to read."""
        return replace(self, relations=())

    def alias(self, n: int) -> str:
        """Return an alias that no level around uses."""
        return f"{'abcdefghijk'[self.level]}{n + 1}"

    @cached_property
    def types(self) -> tuple[DataType, ...]:
        """Return the types of its columns, most frequent ones repeated; some type where there are none."""
        return tuple(column.type for column in self.columns) or (self.catalog.types["int4"], self.catalog.types["text"])

    def of_type(self, type_: DataType) -> list[str]:
        """Return its columns whose values are of the type, as SQL of exactly that type and the scope's collation."""
        return [self._as(column, type_) for column in self.columns if _is(column.type, type_)]

    def _as(self, column: Column, type_: DataType) -> str:
        sql = column.name if column.type is type_ else f"({column.name})::{type_.name}"
        collated = type_.collated and column.collation not in ("", self.collation)
        return f"({sql} COLLATE {self.collation})" if collated else sql


def _is(type_: DataType, wanted: DataType) -> bool:
    return (
        type_.key == wanted.key or type_.key in wanted.sources or (type_.kind == "d" and type_.parts[0] == wanted.key)
    )
