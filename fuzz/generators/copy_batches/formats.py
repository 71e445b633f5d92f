"""Options of COPY, random ones that preserve the values of a batch, and formatting as text, CSV or binary data."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum

from fuzz.generators.choices import Weighted, between, chance, pick, some
from fuzz.generators.copy_batches.table import CopyColumn, Role
from fuzz.generators.copy_batches.values import Value, field

SIGNATURE = b"PGCOPY\n\xff\r\n\0"
TRAILER = b"\xff\xff"
EVERY = ("*",)  # FORCE_NULL or FORCE_NOT_NULL of all columns


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
    extension: bytes = b""  # of the header of binary data; COPY skips it
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
        options += [f"{name.upper()} {literal(given)}" for name in named if (given := getattr(self, name)) is not None]
        if self.header:
            options.append(f"HEADER {self.header}")
        forced = (("FORCE_NOT_NULL", self.force_not_null), ("FORCE_NULL", self.force_null))
        options += [f"{name} {'*' if given == EVERY else _list(given)}" for name, given in forced if given]
        options += self.clauses
        return f" WITH ({', '.join(options)})" if options else ""


def _list(names: Sequence[str]) -> str:
    return f"({', '.join(names)})"


def literal(string: str) -> str:
    """Return a string as SQL."""
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
        header = SIGNATURE + bytes(4) + len(options.extension).to_bytes(4, "big") + options.extension
        return header + b"".join(rows) + (TRAILER if options.closed else b"")
    newline = options.newline.encode()
    lines = list(rows)
    if options.header:
        lines.insert(0, options.field_delimiter.join(column.name for column in batch.columns).encode())
    if options.end_marker:
        lines.append(b"\\.")
    data = newline.join(lines)
    return data + newline if lines and options.closed else data


FORMATS = Weighted((5, Format.TEXT), (4, Format.CSV), (4, Format.BINARY))
LINE_FORMATS = Weighted((1, Format.TEXT), (1, Format.CSV))
TEXT_DELIMITERS = Weighted((12, None), (2, "|"), (2, ","), (1, ";"), (1, "~"), (1, "\x01"))
CSV_DELIMITERS = Weighted((12, None), (2, ";"), (2, "|"), (1, "\t"), (1, ":"))
NULL_MARKERS = Weighted((12, None), (2, "NULL"), (2, "nil"), (1, ""), (1, "\\N"))
NEWLINES = Weighted((12, "\n"), (3, "\r\n"), (1, "\r"))
ENCODINGS = Weighted((8, None), (2, "UTF8"), (2, "LATIN1"), (1, "LATIN9"))
HEADERS = Weighted((6, None), (2, "true"), (3, "match"))
HEADERS_OUT = Weighted((3, None), (2, "true"))
QUOTES = Weighted((8, None), (2, "'"), (1, "~"))
ESCAPES = Weighted((8, None), (2, "\\"))
STRINGS = frozenset({"text", "varchar(12)", "char(6)"})


def make_options(rng: random.Random, batch: Batch) -> Options:
    """Return options for a valid batch. The binary format has no other options."""
    form = FORMATS.pick(rng)
    if form is Format.BINARY:
        extension = b"extension" if chance(rng, 15) else b""
        return Options(form, extension=extension, closed=chance(rng, 85))
    if chance(rng, 35):
        return Options(form)
    options = Options(
        form,
        delimiter=(CSV_DELIMITERS if form is Format.CSV else TEXT_DELIMITERS).pick(rng),
        null=_null_marker(rng, batch, form),
        header=HEADERS.pick(rng),
        encoding=ENCODINGS.pick(rng),
        newline=NEWLINES.pick(rng),
        closed=chance(rng, 85),
    )
    if form is Format.TEXT:
        marked = chance(rng, 20) and options.newline == "\n" and options.closed
        return replace(options, end_marker=marked)
    return _csv(rng, options, batch)


def make_output_options(rng: random.Random, columns: tuple[str, ...], *, ordered: bool) -> Options:
    """Return options for COPY TO. Binary data starts with a header, so only ordered output is comparable."""
    form = FORMATS.pick(rng) if ordered else LINE_FORMATS.pick(rng)
    if form is Format.BINARY:
        return Options(form)
    options = Options(
        form,
        delimiter=(CSV_DELIMITERS if form is Format.CSV else TEXT_DELIMITERS).pick(rng),
        null=NULL_MARKERS.pick(rng),
        header=HEADERS_OUT.pick(rng),
        encoding=ENCODINGS.pick(rng),
    )
    if form is Format.CSV and chance(rng, 40):
        named = ", ".join(some(rng, columns, between(rng, 1, len(columns))))
        return replace(options, clauses=(pick(rng, ("FORCE_QUOTE *", f"FORCE_QUOTE ({named})")),))
    return options


def _null_marker(rng: random.Random, batch: Batch, form: Format) -> str | None:
    """Return a NULL marker. In the text format it must differ from all values; CSV quotes equal values."""
    marker = NULL_MARKERS.pick(rng)
    texts = (cell.text for column in batch.cells for cell in dict.fromkeys(column) if not isinstance(cell, Absent))
    return None if form is Format.TEXT and marker is not None and marker in texts else marker


def _csv(rng: random.Random, options: Options, batch: Batch) -> Options:
    quote = QUOTES.pick(rng)
    escape = ESCAPES.pick(rng)
    strings = [column.name for column in batch.columns if column.type.sql in STRINGS and column.nullable]
    if chance(rng, 8):
        return replace(options, quote=quote, escape=escape, force_null=EVERY)
    if chance(rng, 30) and not any(Absent.NULL in cells for cells in batch.cells):
        return replace(options, quote=quote, escape=escape, force_not_null=EVERY)
    forced = some(rng, strings, between(rng, 1, len(strings))) if strings and chance(rng, 30) else []
    cut = between(rng, 0, len(forced))
    return replace(
        options,
        quote=quote,
        escape=escape,
        force_not_null=tuple(forced[:cut]),
        force_null=tuple(forced[cut:]),
    )


def with_defaults(rng: random.Random, batch: Batch, options: Options) -> tuple[Batch, Options]:
    """Return batch and options where some cells are the DEFAULT marker."""
    defaulted = [column for column in batch.columns if column.role is Role.DEFAULTED]
    if options.format is Format.BINARY or not defaulted or not chance(rng, 60):
        return batch, options
    marker = pick(rng, ("@@", "\\D", "the default"))
    if options.delimiter is not None and options.delimiter in marker:
        return batch, options
    for column in defaulted:
        cells = batch.cells[batch.position(column.name)]
        spread = (Absent.DEFAULT if row % 3 else cell for row, cell in enumerate(cells))
        batch = batch.with_column(column.name, tuple(spread))
    return batch, replace(options, default=marker)
