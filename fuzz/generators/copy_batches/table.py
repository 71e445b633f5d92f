"""Description of a table: enough to generate rows that it accepts and rows that it refuses."""

from dataclasses import dataclass, replace
from enum import StrEnum

from fuzz.generators.copy_batches.values import ColumnType
from fuzz.generators.generator import Scale
from oracles.model.case import Step

BAD_KEY = 999_999  # fits no partition, and violates each check constraint
BOOM_KEY = 888_888  # makes some triggers raise an error
BAD_REFERENCE = 777_777  # absent from the table `ref`
REFERENCES = 5  # rows of `ref`: 1, 2 ...


class Role(StrEnum):
    """Sources of a column's values."""

    ID = "id"  # unique in the whole case, not null
    KEY = "key"  # the partition key; a value of CopyTable.keys
    REFERENCE = "reference"  # foreign key to `ref`
    SPAN = "span"  # a range that overlaps no other row's range
    PAD = "pad"  # text of any length
    DATA = "data"
    DEFAULTED = "defaulted"  # has a default or an identity, so a COPY may omit it
    GENERATED = "generated"  # never in a COPY


# Values in an INSERT of the row numbered {id}. Columns of other roles may be omitted.
ROLE_EXPRESSIONS = {
    Role.ID: "{id}",
    Role.REFERENCE: f"1 + {{id}} % {REFERENCES}",
    Role.SPAN: "int4range({id}, {id} + 1)",
    Role.PAD: "'pad ' || {id}",
}


@dataclass(frozen=True, slots=True)
class CopyColumn:
    """A column. In CREATE TABLE, `suffix` follows its type."""

    name: str
    type: ColumnType
    role: Role = Role.DATA
    nullable: bool = True
    suffix: str = ""

    @property
    def definition(self) -> str:
        """Return the column's definition for CREATE TABLE."""
        null = "" if self.nullable else "NOT NULL"
        return " ".join(filter(None, (self.name, self.type.sql, self.suffix, null)))

    @property
    def required(self) -> bool:
        """Return whether each row needs a value."""
        return not self.nullable and self.role is not Role.DEFAULTED


class Family(StrEnum):
    """Kinds of relations that are targets of COPY."""

    PLAIN = "plain"
    PARTITIONED = "partitioned"
    VIEW = "view"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class CopyTable:
    """A relation as a target of COPY, and the rows that it accepts."""

    name: str
    columns: tuple[CopyColumn, ...]
    family: Family = Family.PLAIN
    persistence: str = ""  # TEMPORARY, UNLOGGED or empty
    keys: tuple[int | None, ...] = (0, 1, 2, 3, None)
    leaves: int = 1
    takes_any_key: bool = True
    partitions: tuple[str, ...] = ()  # names of direct partitions that are leaves
    leaves_below: tuple[str, ...] = ()  # names of leaves that are partitions of partitions
    # immediate checks that rows may violate: check, unique, exclusion, reference, raise
    checked: frozenset[str] = frozenset()
    deferred: frozenset[str] = frozenset()  # the same, checked at the end of the transaction
    skips_rows: bool = False  # a trigger skips some rows before constraints are checked
    upserts: bool = False  # ON CONFLICT finds every existing row, and no constraint is deferrable
    slow: bool = False  # a trigger runs for each row
    fixed: bool = False  # a view depends on it, so its columns must not change
    remote: bool = False  # all or some rows are behind a foreign server

    @property
    def copied(self) -> tuple[CopyColumn, ...]:
        """Return the columns of a COPY without column list."""
        return tuple(column for column in self.columns if column.role is not Role.GENERATED)

    @property
    def create(self) -> str:
        """Return the beginning of CREATE TABLE for the table and its partitions."""
        return f"CREATE {self.persistence} TABLE" if self.persistence else "CREATE TABLE"

    @property
    def named_leaves(self) -> tuple[str, ...]:
        """Return the leaves whose names are known."""
        return self.partitions + self.leaves_below

    def with_role(self, role: Role) -> tuple[CopyColumn, ...]:
        """Return the columns of a role."""
        return tuple(column for column in self.columns if column.role is role)


@dataclass(frozen=True, slots=True)
class CopyState:
    """The state of a case between two steps: the tables, and the next unused numbers of rows and names."""

    scale: Scale
    tables: tuple[CopyTable, ...] = ()
    next_id: int = 1
    next_name: int = 1

    def table(self, name: str) -> CopyTable:
        """Return the current description of the table of that name."""
        return next(table for table in self.tables if table.name == name)

    def changed(self, table: CopyTable) -> "CopyState":
        """Return the state with a new description of a table."""
        return replace(self, tables=tuple(table if old.name == table.name else old for old in self.tables))

    def after_rows(self, count: int) -> "CopyState":
        """Return the state after `count` more rows."""
        return replace(self, next_id=self.next_id + count)

    def named(self, count: int = 1) -> "CopyState":
        """Return the state after `count` more names."""
        return replace(self, next_name=self.next_name + count)


Made = tuple[tuple[Step, ...], CopyState]  # steps, and the state after them
