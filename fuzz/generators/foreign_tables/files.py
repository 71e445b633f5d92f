"""File tables: relations of the scene that file_fdw reads, also in other formats, and statements that it refuses.

A scene has at most one, which no statement changes. COPY converts only the columns that a query uses.
"""

import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from fuzz.generators import file_tables
from fuzz.generators.choices import between, chance, pick, some
from oracles.model.case import Kind, Step

FILE: Final = "p1"  # name of the file table
_NAMES: Final = ("k", "a", "b", "c", "d", "e")
_MOST: Final = 60  # rows
_DEFAULTED: Final = "the default"


@dataclass(frozen=True, slots=True)
class _Format:
    """The options of a file table, each empty if it is not given."""

    format: str
    delimiter: str
    null: str
    header: str
    default: str
    encoding: str

    @property
    def options(self) -> tuple[str, ...]:
        """Return the options as SQL."""
        return tuple(f"{option} '{value}'" for option, value in asdict(self).items() if value)

    @property
    def separator(self) -> str:
        """Return the delimiter, or the default one."""
        return self.delimiter or ","

    def line(self, values: tuple[str | None, ...]) -> str:
        """Return the values as a line."""
        null = self.null or ("" if self.format == "csv" else "\\N")
        return self.separator.join(null if value is None else self._field(value) for value in values)

    def _field(self, value: str) -> str:
        return f'"{value}"' if self.format == "csv" and self.separator in value else value


def _program(*lines: str, then: str = "") -> str:
    r"""Return the option for a program that prints the lines, and then runs another command.

    No line has a quote or `$`, which the shell and SQL would interpret.
    """
    printed = "printf '%s\\n' " + " ".join(f"'{line}'" for line in lines)
    return f"program $${printed}{f'; {then}' if then else ''}$$"


def file_relation(rng: random.Random, columns: str, keys: int, repeat: int) -> Iterator[Step]:
    """Yield the steps that create a file table with up to 60 keys of the scene, or with the keys after an interval."""
    form = _format(rng)
    marked = bool(form.default)
    every, first = between(rng, 1, 4), between(rng, 1, max(1, keys // 2))
    numbers = range(first, max(first, keys) + 1, every)[:_MOST]
    lines = [form.line(_row(number, repeat, defaulted=marked and number % 3 == 0)) for number in numbers]
    if form.header:
        lines.insert(0, form.separator.join(_NAMES))
    yield from map(Step, file_tables.PROLOGUE)
    dropped = chance(rng, 30)
    shape = f"({'gone int, ' if dropped else ''}{columns})"
    yield Step(file_tables.file_table(FILE, shape, _program(*lines), *form.options), tags=("file",))
    if dropped:
        yield Step(f"ALTER FOREIGN TABLE {FILE} DROP COLUMN gone")
    if form.format == "csv":
        for column, option in (("b", "force_null"), ("b", "force_not_null"), ("a", "force_null")):
            if chance(rng, 30):
                yield Step(f"ALTER FOREIGN TABLE {FILE} ALTER COLUMN {column} OPTIONS ({option} 'true')")
    if chance(rng, 30):
        yield Step(f"ANALYZE {FILE}", tags=("file.analyze",))  # a warning: PostgreSQL analyzes files only


def _format(rng: random.Random) -> _Format:
    csv = chance(rng, 70)
    return _Format(
        "csv" if csv else "text",
        pick(rng, ("", ";", "|") if csv else ("|", ";")),  # arrays have commas, which the text format would escape
        pick(rng, ("", "", "nil")),
        pick(rng, ("", "", "true", "match")),
        _DEFAULTED if chance(rng, 35) else "",
        pick(rng, ("", "", "UTF8", "LATIN1", "EUC_JP")),
    )


def _row(number: int, repeat: int, *, defaulted: bool) -> tuple[str | None, ...]:
    """Return the text of the columns' values in the row of a key, much as in other relations."""
    few = number % repeat
    c = _DEFAULTED if defaulted else f"{few}.25"
    return (
        str(number),
        str(number % 8) if number % 7 else None,
        f"v{few}" if number % 5 else None,
        c,
        f"2024-02-{1 + few % 28:02}" if number % 9 else None,
        f"{{{number % 3},{number % 5}}}",
    )


_SHAPE: Final = "(k int, a int DEFAULT 7, b text)"
# Options of tables whose rows COPY reads up to an error, with the columns that it reads without one.
_FAULTY: Final = (
    (("1,2,x", "2,y,z"), "format 'csv'", ("k, b", "b")),
    (("1,2,x", ",3,z", "u,3,z"), "format 'csv', null ''", ("a", "a, b")),
    (("1|D|x", "u|3|z"), "format 'text', delimiter '|', default 'D'", ("a", "a, b")),
    (("1|D|x", "D|3|z"), "format 'text', delimiter '|', default 'D'", ()),
    (("1,2,x", "2,3"), "format 'csv'", ()),
    (("1,2,x", "2,3,z,4"), "format 'csv'", ()),
    (("1,2,x", '2,3,"z'), "format 'csv'", ()),
    (("k,b,a", "1,2,x"), "format 'csv', header 'match'", ()),
)
_UNREADABLE: Final = (
    f"{_program('1,2,x', then='exit 3')}, format 'csv'",
    "program 'exit 3'",
    "program 'no_such_program 2> /dev/null'",
    "filename '/nowhere/rows'",
    "filename '/dev'",
    f"{file_tables.EMPTY}, format 'binary'",
)
_READ: Final = ("*", "wrong", "k, a", "count(*)")
_OPTIONS: Final = (
    "format 'csv'",
    "program 'true', filename '/dev/null'",
    *(
        f"{file_tables.EMPTY}, {option}"
        for option in (
            *("format 'xml'", "format 'binary', header 'true'", "force_null 'true'", "delimiter 'ab'", "quote '~'"),
            *("encoding 'nowhere'", "nonsense 'true'", "format 'csv', null 'x', default 'x'"),
        )
    ),
)
_CHANGES: Final = (
    "INSERT INTO wrong VALUES (1, 2, 'x')",
    "UPDATE wrong SET b = 'y'",
    "DELETE FROM wrong",
    "TRUNCATE wrong",
    "COPY wrong FROM STDIN",
    "ALTER FOREIGN TABLE wrong OPTIONS (DROP program)",
    "ALTER FOREIGN TABLE wrong ALTER COLUMN b OPTIONS (force_quote 'true')",
    "ALTER FOREIGN TABLE wrong ALTER COLUMN b OPTIONS (force_null 'perhaps')",
)


def refused_file(rng: random.Random) -> list[Step]:
    """Return statements about a file table whose rows, program or options are wrong, most of which fail.

    Its name is `wrong`.
    """
    return [*map(Step, file_tables.PROLOGUE), *pick(rng, (_faulty, _unreadable, _unchangeable))(rng)]


def _faulty(rng: random.Random) -> list[Step]:
    lines, options, readable = pick(rng, _FAULTY)
    return [
        Step(file_tables.file_table("wrong", _SHAPE, _program(*lines), options)),
        *(Step(f"SELECT {columns} FROM wrong") for columns in readable),
        *(_failing(f"SELECT {columns} FROM wrong") for columns in some(rng, _READ, 2)),
        Step("DROP FOREIGN TABLE wrong"),
    ]


def _unreadable(rng: random.Random) -> list[Step]:
    return [
        Step(file_tables.file_table("wrong", _SHAPE, pick(rng, _UNREADABLE))),
        *(_failing(f"SELECT {columns} FROM wrong") for columns in some(rng, _READ, 2)),
        Step("DO $$ BEGIN EXECUTE 'EXPLAIN SELECT k FROM wrong'; END $$"),
        Step("DROP FOREIGN TABLE wrong"),
    ]


def _unchangeable(rng: random.Random) -> list[Step]:
    return [
        *(_failing(file_tables.file_table("refused", _SHAPE, options)) for options in some(rng, _OPTIONS, 3)),
        Step(file_tables.file_table("wrong", _SHAPE, _program("1,2,x"), "format 'csv'")),
        *(_failing(change) for change in some(rng, _CHANGES, 4)),
        Step("DROP FOREIGN TABLE wrong"),
    ]


def _failing(sql: str) -> Step:
    kind, data = (Kind.COPY_IN, b"1\t2\tx\n") if sql.startswith("COPY") else (Kind.COMMAND, None)
    return Step(sql, kind, copy_data=data, may_fail=True, tags=("file.refused",))
