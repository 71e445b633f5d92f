"""Immutable scopes: the relations and columns that an expression may reference at one level of a query."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from fuzz.sources.typed.catalog import ServerCatalog
from fuzz.sources.typed.datatypes import DataType


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `collation` is its declared collation, "" for the default. `unique`: it is a key."""

    name: str
    type: DataType
    collation: str = ""
    nullable: bool = True
    unique: bool = False


def numbered(types: Sequence[DataType], letter: str = "c") -> tuple[Column, ...]:
    """Return columns of these types, named c1, c2 and so on."""
    return tuple(Column(f"{letter}{n}", type_) for n, type_ in enumerate(types, start=1))


def under(alias: str, columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return the columns of a FROM item, qualified with its alias."""
    return tuple(replace(column, name=f"{alias}.{column.name}") for column in columns)


def names(columns: Sequence[Column]) -> str:
    """Return a list of column names as SQL."""
    return ", ".join(column.name for column in columns)


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or common table expression."""

    name: str
    columns: tuple[Column, ...]
    rows: int


@dataclass(frozen=True)
class Scope:
    """The names usable at one level of a query. All collatable text gets the scope's collation."""

    catalog: ServerCatalog
    relations: tuple[Relation, ...]  # for FROM
    columns: tuple[Column, ...] = ()  # of this level and outer levels
    collation: str = '"default"'
    rows: int = 1  # estimated evaluations of an expression
    level: int = 0

    def over(self, columns: tuple[Column, ...], rows: int) -> "Scope":
        """Return the scope over these columns and those of outer levels."""
        return replace(self, columns=self.columns + columns, rows=max(1, self.rows * rows))

    def only(self, columns: tuple[Column, ...]) -> "Scope":
        """Return the scope over these columns alone."""
        return replace(self, columns=columns)

    def inner(self) -> "Scope":
        """Return the scope of a subquery, which can reference the columns of this level."""
        return replace(self, level=self.level + 1)

    def with_relations(self, relations: tuple[Relation, ...]) -> "Scope":
        """Return the scope after WITH."""
        return replace(self, relations=self.relations + relations)

    def without_relations(self) -> "Scope":
        """Return the scope without relations, so that no expression contains a subquery."""
        return replace(self, relations=())

    def alias(self, n: int) -> str:
        """Return an alias that no outer level uses."""
        return f"{'abcdefghijk'[self.level]}{n + 1}"

    @cached_property
    def types(self) -> tuple[DataType, ...]:
        """Return the types of its columns, with duplicates; int4 and text if there are no columns."""
        return tuple(column.type for column in self.columns) or (self.catalog.types["int4"], self.catalog.types["text"])

    def of_type(self, type_: DataType) -> list[str]:
        """Return its columns of that type, as SQL with exactly that type and the scope's collation."""
        return [self._as(column, type_) for column in self.columns if _is(column.type, type_)]

    def _as(self, column: Column, type_: DataType) -> str:
        sql = column.name if column.type is type_ else f"({column.name})::{type_.name}"
        collated = type_.collated and column.collation not in ("", self.collation)
        return f"({sql} COLLATE {self.collation})" if collated else sql


def _is(type_: DataType, wanted: DataType) -> bool:
    return (
        type_.key == wanted.key or type_.key in wanted.sources or (type_.kind == "d" and type_.parts[0] == wanted.key)
    )
