"""What the workload knows of a table: enough to write rows that it accepts, and rows that it refuses."""

from dataclasses import dataclass, replace
from enum import StrEnum

from fuzz.generators.copy_batches.values import ColumnType
from fuzz.generators.generator import Scale
from oracles.model.case import Step

BAD_KEY = 999_999  # no partition takes it, every check constraint refuses it
BOOM_KEY = 888_888  # some triggers raise an error at it
BAD_REFERENCE = 777_777  # not in the table `ref`
REFERENCES = 5  # rows of `ref`: 1, 2 ...


class Role(StrEnum):
    """How a column gets its values."""

    ID = "id"  # unique over the whole case, never null
    KEY = "key"  # what tables are partitioned by; one of the table's keys
    REFERENCE = "reference"  # foreign key into `ref`
    SPAN = "span"  # a range that overlaps that of no other row
    PAD = "pad"  # text of any length
    DATA = "data"
    DEFAULTED = "defaulted"  # has a default or an identity, so it may be left out
    GENERATED = "generated"  # never in a COPY


# The value of a column in an INSERT that numbers its rows by {id}; other roles can be left out.
ROLE_EXPRESSIONS = {
    Role.ID: "{id}",
    Role.REFERENCE: f"1 + {{id}} % {REFERENCES}",
    Role.SPAN: "int4range({id}, {id} + 1)",
    Role.PAD: "'pad ' || {id}",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `suffix` is what follows its type in CREATE TABLE."""

    name: str
    type: ColumnType
    role: Role = Role.DATA
    nullable: bool = True
    suffix: str = ""

    @property
    def definition(self) -> str:
        """Return the column as written in CREATE TABLE."""
        null = "" if self.nullable else "NOT NULL"
        return " ".join(filter(None, (self.name, self.type.sql, self.suffix, null)))

    @property
    def required(self) -> bool:
        """Return whether rows must give a value."""
        return not self.nullable and self.role is not Role.DEFAULTED


class Family(StrEnum):
    """Kinds of relation that COPY writes to."""

    PLAIN = "plain"
    PARTITIONED = "partitioned"
    VIEW = "view"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Table:
    """A relation to copy into, and which rows it takes."""

    name: str
    columns: tuple[Column, ...]
    family: Family = Family.PLAIN
    persistence: str = ""  # TEMPORARY, UNLOGGED or nothing
    keys: tuple[int | None, ...] = (0, 1, 2, 3, None)
    leaves: int = 1
    takes_any_key: bool = True
    partitions: tuple[str, ...] = ()  # names of direct partitions that hold rows themselves
    checked: frozenset[str] = frozenset()  # check, unique, exclusion, reference, raise: what refuses rows at once
    deferred: frozenset[str] = frozenset()  # the same, where the refusal comes at the transaction's end
    skips_rows: bool = False  # a trigger leaves rows out before constraints see them
    upserts: bool = False  # ON CONFLICT finds any row that is there already, and no constraint is deferrable
    slow: bool = False  # a trigger runs for each row
    fixed: bool = False  # a view depends on it: columns stay as they are
    remote: bool = False  # rows, or some of them, live behind a foreign server

    @property
    def copied(self) -> tuple[Column, ...]:
        """Return the columns that COPY without a column list takes."""
        return tuple(column for column in self.columns if column.role is not Role.GENERATED)

    @property
    def create(self) -> str:
        """Return how CREATE TABLE begins for the table, and for its partitions."""
        return f"CREATE {self.persistence} TABLE" if self.persistence else "CREATE TABLE"

    def with_role(self, role: Role) -> tuple[Column, ...]:
        """Return the columns of a role."""
        return tuple(column for column in self.columns if column.role is role)


@dataclass(frozen=True, slots=True)
class Scope:
    """What is known where a step is made: the tables, and the first number not yet used for a row or a name."""

    scale: Scale
    tables: tuple[Table, ...] = ()
    next_id: int = 1
    next_name: int = 1

    def table(self, name: str) -> Table:
        """Return the table of a name, as it is by now."""
        return next(table for table in self.tables if table.name == name)

    def changed(self, table: Table) -> "Scope":
        """Return the scope in which this table took the place of the one with its name."""
        return replace(self, tables=tuple(table if old.name == table.name else old for old in self.tables))

    def after_rows(self, count: int) -> "Scope":
        """Return the scope in which `count` more row numbers are used."""
        return replace(self, next_id=self.next_id + count)

    def named(self, count: int = 1) -> "Scope":
        """Return the scope in which `count` more names are used."""
        return replace(self, next_name=self.next_name + count)


Made = tuple[tuple[Step, ...], Scope]  # steps, and the scope after them
