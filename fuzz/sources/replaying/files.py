"""Files of a user's SQL: scripts and dumps as psql reads them, and statements that a server has recorded as CSV."""

import csv
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import pglast

from fuzz.errors import CaseError
from fuzz.psql.script import Sent, read_script

MOST_BYTES: Final = 32 << 20  # each case loads them, several times
_SUFFIXES: Final = (".sql", ".csv", ".psql", ".dump")
_MESSAGE: Final = 13  # the column of csvlog
_CSVLOG_COLUMNS: Final = range(23, 30)  # of PostgreSQL 13 and later ones
_STATEMENT: Final = re.compile(r"(?:duration: \S+ ms  )?(?:statement|execute [^:]*): (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Files:
    """What scripts send, a file each, and statements that a server has seen, for which no order is known."""

    scripts: tuple[tuple[Sent, ...], ...]
    recorded: tuple[str, ...]


@lru_cache(maxsize=1)
def read_files(path: Path) -> Files:
    """Read a file, or a directory's in the order of their names. Raises CaseError."""
    found = sorted(each for each in path.rglob("*") if each.suffix in _SUFFIXES) if path.is_dir() else [path]
    if not found:
        raise CaseError(f"{path} has no files ending in {', '.join(_SUFFIXES)}")
    size = sum(each.stat().st_size for each in found)
    if size > MOST_BYTES:
        limit = MOST_BYTES >> 20
        raise CaseError(f"{path} has {size >> 20} MB, which each case would load; give at most {limit} MB of SQL")
    texts = {each: _text(each) for each in found}
    scripts = tuple(tuple(read_script(text, {}, {})) for file, text in texts.items() if file.suffix != ".csv")
    recorded = (sql for file, text in texts.items() if file.suffix == ".csv" for sql in _recorded(file, text))
    return Files(scripts, tuple(dict.fromkeys(recorded)))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CaseError(f"{file} cannot be read ({error}); --sql takes text in UTF-8, as pg_dump writes it") from error


def _recorded(file: Path, text: str) -> Iterator[str]:
    """Yield the statements of pg_stat_statements, which has a column `query`, or of a log in CSV."""
    csv.field_size_limit(sys.maxsize)
    rows = list(csv.reader(text.splitlines(keepends=True)))
    if rows and "query" in rows[0]:
        column = rows[0].index("query")
        yield from (sql for row in rows[1:] if len(row) > column for sql in _split(row[column]))
    elif rows and len(rows[0]) in _CSVLOG_COLUMNS:
        said = (_STATEMENT.fullmatch(row[_MESSAGE]) for row in rows if len(row) > _MESSAGE)
        yield from (sql for found in said if found for sql in _split(found[1]))
    else:
        raise CaseError(f"{file} is neither a log in CSV nor pg_stat_statements with a header that names `query`")


def _split(text: str) -> Iterator[str]:
    try:
        yield from pglast.split(text)
    except pglast.Error:
        return  # truncated by the server, most likely
