"""Options of COPY, and formatting of batches as text, CSV or binary data."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum

from fuzz.generators.copy_batches.table import CopyColumn
from fuzz.generators.copy_batches.values import Value, field

SIGNATURE = b"PGCOPY\n\xff\r\n\0"
TRAILER = b"\xff\xff"
EVERY = ("*",)  # FORCE_NULL of all columns


class Format(StrEnum):
    """Formats of COPY."""

    TEXT = "text"
    CSV = "csv"
    BINARY = "binary"


class Absent(Enum):
    """Markers that a cell holds in place of a value."""

    NULL = 0
    DEFAULT = 1


Cell = Value | Absent


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows to send, stored by column."""

    columns: tuple[CopyColumn, ...]
    cells: tuple[tuple[Cell, ...], ...]

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return len(self.cells[0])

    def position(self, name: str) -> int:
        """Return the position of a column."""
        return [column.name for column in self.columns].index(name)

    def with_column(self, name: str, cells: Sequence[Cell]) -> "Batch":
        """Return the batch with other cells in one column."""
        at = self.position(name)
        return Batch(self.columns, (*self.cells[:at], tuple(cells), *self.cells[at + 1 :]))

    def with_cell(self, name: str, row: int, cell: Cell) -> "Batch":
        """Return the batch with one other cell."""
        column = self.cells[self.position(name)]
        return self.with_column(name, (*column[:row], cell, *column[row + 1 :]))


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a COPY statement and its data. None stands for the default of COPY."""

    format: Format = Format.TEXT
    delimiter: str | None = None
    null: str | None = None
    default: str | None = None
    quote: str | None = None
    escape: str | None = None
    header: str | None = None  # true or match
    encoding: str | None = None  # name, the same in PostgreSQL and Python
    newline: str = "\n"
    end_marker: bool = False
    closed: bool = True  # whether the last line ends in a newline, or binary data in its trailer
    force_not_null: tuple[str, ...] = ()
    force_null: tuple[str, ...] = ()
    clauses: tuple[str, ...] = ()  # further options as SQL

    @property
    def field_delimiter(self) -> str:
        """Return the delimiter, or the format's default."""
        return self.delimiter or ("," if self.format is Format.CSV else "\t")

    @property
    def null_marker(self) -> str:
        """Return the string for NULL, or the format's default."""
        return self.null if self.null is not None else ("" if self.format is Format.CSV else "\\N")

    def sql(self) -> str:
        """Return the WITH clause, or "" if all options have their defaults."""
        options = [f"FORMAT {self.format}"] if self.format is not Format.TEXT else []
        named = ("delimiter", "null", "default", "quote", "escape", "encoding")
        options += [f"{name.upper()} {_literal(given)}" for name in named if (given := getattr(self, name)) is not None]
        if self.header:
            options.append(f"HEADER {self.header}")
        options += [f"FORCE_NOT_NULL {_list(self.force_not_null)}"] if self.force_not_null else []
        options += (
            [f"FORCE_NULL {'*' if self.force_null == EVERY else _list(self.force_null)}"] if self.force_null else []
        )
        options += self.clauses
        return f" WITH ({', '.join(options)})" if options else ""


def _list(names: Sequence[str]) -> str:
    return f"({', '.join(names)})"


def _literal(string: str) -> str:
    written = string.replace("\\", "\\\\").replace("'", "''").replace("\t", "\\t").replace("\x01", "\\x01")
    return f"E'{written}'" if "\\" in written else f"'{written}'"


def text_cell(cell: Cell, options: Options) -> str:
    """Return a cell in COPY's text format."""
    if isinstance(cell, Absent):
        return _marker(cell, options)
    string = cell.text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    # An octal escape, and a character as its two bytes.
    string = string.replace("\x7f", "\\177").replace("\u00fc", "\\xc3\\xbc")
    if options.delimiter is None:
        return string.replace("\t", "\\t")
    return string.replace(options.delimiter, "\\" + options.delimiter)


def csv_cell(cell: Cell, options: Options) -> str:
    """Return a cell in COPY's CSV format, quoted if necessary. A value equal to a marker is quoted, too."""
    if isinstance(cell, Absent):
        return _marker(cell, options)
    quote = options.quote or '"'
    escape = options.escape or quote
    special = (options.field_delimiter, quote, escape, "\n", "\r")
    markers = (options.null_marker, options.default, "\\.")
    if cell.text not in markers and not any(mark in cell.text for mark in special):
        return cell.text
    string = cell.text if escape == quote else cell.text.replace(escape, escape + escape)
    return quote + string.replace(quote, escape + quote) + quote


def _marker(cell: Absent, options: Options) -> str:
    return (options.default or "") if cell is Absent.DEFAULT else options.null_marker


def records(batch: Batch, options: Options) -> list[bytes]:
    """Return the formatted rows, without line ends."""
    if options.format is Format.BINARY:
        count = len(batch.columns).to_bytes(2, "big")
        fields = [[field(None if isinstance(cell, Absent) else cell) for cell in column] for column in batch.cells]
        return [count + b"".join(row) for row in zip(*fields, strict=True)]
    write = csv_cell if options.format is Format.CSV else text_cell
    columns = []
    for column in batch.cells:
        written = {cell: write(cell, options) for cell in dict.fromkeys(column)}
        columns.append([written[cell] for cell in column])
    join = options.field_delimiter.join
    encoding = options.encoding or "UTF8"
    return [join(row).encode(encoding) for row in zip(*columns, strict=True)]


def stream(rows: Sequence[bytes], batch: Batch, options: Options) -> bytes:
    """Return all data that the client sends: header, rows, line ends, and end marker or trailer."""
    if options.format is Format.BINARY:
        return SIGNATURE + bytes(8) + b"".join(rows) + (TRAILER if options.closed else b"")
    newline = options.newline.encode()
    lines = list(rows)
    if options.header:
        lines.insert(0, options.field_delimiter.join(column.name for column in batch.columns).encode())
    if options.end_marker:
        lines.append(b"\\.")
    data = newline.join(lines)
    return data + newline if lines and options.closed else data
