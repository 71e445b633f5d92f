"""Random options of COPY that preserve the values of a batch."""

import random
from dataclasses import replace

from fuzz.generators.choices import Weighted, between, chance, pick, some
from fuzz.generators.copy_batches.formats import EVERY, Absent, Batch, Format, Options
from fuzz.generators.copy_batches.table import CopyColumn, Role

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
        return Options(form, closed=chance(rng, 85))
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
    return _csv(rng, options, batch.columns)


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


def _csv(rng: random.Random, options: Options, columns: tuple[CopyColumn, ...]) -> Options:
    quote = QUOTES.pick(rng)
    escape = ESCAPES.pick(rng)
    strings = [column.name for column in columns if column.type.sql in STRINGS and column.nullable]
    if chance(rng, 8):
        return replace(options, quote=quote, escape=escape, force_null=EVERY)
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
