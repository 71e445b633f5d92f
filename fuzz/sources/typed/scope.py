"""Scopes over columns of an arm's types."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from fuzz.generators.sql.scope import Column, Relation, Scope
from fuzz.sources.typed.catalog import ServerCatalog
from fuzz.sources.typed.datatypes import DataType


def numbered(types: Sequence[DataType], letter: str = "c") -> tuple[Column[DataType], ...]:
    """Return columns of these types, named c1, c2 and so on."""
    return tuple(Column(f"{letter}{n}", f"{letter}{n}", type_, nullable=True) for n, type_ in enumerate(types, start=1))


@dataclass(frozen=True, kw_only=True)
class TypedScope(Scope[DataType]):
    """A scope with the arm's catalog. All collatable text gets the scope's collation."""

    catalog: ServerCatalog
    collation: str = '"default"'

    def over(self, relations: tuple[Relation[DataType], ...], rows: int) -> "TypedScope":
        """Return the scope over these relations, whose expressions are evaluated for each evaluation of outer ones."""
        return replace(self, relations=relations, rows=max(1, self.rows * rows))

    def only(self, *relations: Relation[DataType]) -> "TypedScope":
        """Return the scope over these relations alone, without those of outer levels."""
        return replace(self, relations=relations, outer=())

    def without_sources(self) -> "TypedScope":
        """Return the scope without sources, so that no expression contains a subquery."""
        return replace(self, sources=())

    @cached_property
    def columns(self) -> tuple[Column[DataType], ...]:
        """Return the columns of outer levels and of this level."""
        return tuple(column for relation in self.outer + self.relations for column in relation.columns)

    @cached_property
    def types(self) -> tuple[DataType, ...]:
        """Return the types of its columns, with duplicates; int4 and text if there are no columns."""
        return tuple(column.type for column in self.columns) or (self.catalog.types["int4"], self.catalog.types["text"])

    def of_type(self, type_: DataType) -> list[str]:
        """Return its columns of that type, as SQL with exactly that type and the scope's collation."""
        return [self._as(column, type_) for column in self.columns if _is(column.type, type_)]

    def _as(self, column: Column[DataType], type_: DataType) -> str:
        sql = column.sql if column.type is type_ else f"({column.sql})::{type_.name}"
        collated = type_.collated and column.collation not in ("", self.collation)
        return f"({sql} COLLATE {self.collation})" if collated else sql


def _is(type_: DataType, wanted: DataType) -> bool:
    return (
        type_.key == wanted.key or type_.key in wanted.sources or (type_.kind == "d" and type_.parts[0] == wanted.key)
    )
