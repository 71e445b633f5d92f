"""COPY of small tables of unusual shapes.

They have no columns, many columns, several volatile defaults, a NOT NULL domain, row security, or leaves that differ.
Another one is a partition, which COPY names itself.
"""

import random
from collections.abc import Callable
from typing import Final

from fuzz.generators.choices import Weighted, between, chance, pick
from fuzz.generators.copy_batches.encoded import client_encoded
from fuzz.generators.copy_batches.formats import SIGNATURE, TRAILER
from fuzz.generators.copy_batches.leaves import uneven_leaves
from fuzz.generators.copy_batches.written import WrittenCopy
from oracles.model.case import Kind, Step

_MANY: Final = 136  # columns; more than 128 pointers are not cleared in a loop (MemSet)

HELPERS: Final = (
    "CREATE TABLE no_columns ()",
    f"CREATE TABLE many_columns (n int4, {', '.join(f'c{number} int2' for number in range(1, _MANY))})",
    "CREATE TABLE ticking (n int4 DEFAULT volatile_tick(), m int4 DEFAULT volatile_tick(), s text)",
    "CREATE TABLE halves (n int4, s text) PARTITION BY LIST (n)",
    "CREATE TABLE halves_1 PARTITION OF halves FOR VALUES IN (1)",
    "CREATE TABLE guarded (n int4, s text)",
    "INSERT INTO guarded SELECT g, 'row ' || g FROM generate_series(1, 5) AS g",
    "ALTER TABLE guarded ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
    # It has the name of its table, because a scene has the objects that statements name.
    "CREATE POLICY guarded ON guarded USING (n > 1)",
)


def _written(written: WrittenCopy, query: str) -> tuple[Step, ...]:
    return written.step, Step(query, Kind.QUERY)


def _no_columns(rng: random.Random) -> tuple[Step, ...]:
    """Return empty lines or binary rows without fields, one that is not empty, and the table as output."""
    form = pick(rng, ("text", "csv", "binary"))
    fails = form != "binary" and chance(rng, 30)
    data = f"{pick(rng, ('', chr(10), chr(10) * 3))}{'x' if fails else ''}".encode()
    if form == "binary":
        data = SIGNATURE + bytes(8) + bytes(2) * between(rng, 0, 3) + TRAILER
    options = f"FORMAT {form}{', HEADER match' if form != 'binary' and not fails and chance(rng, 30) else ''}"
    out = f"COPY no_columns TO STDOUT WITH (FORMAT {pick(rng, ('text', 'csv, HEADER', 'binary'))})"
    written = WrittenCopy("no_columns", options, data, "no_columns", fails)
    return (*_written(written, "SELECT count(*) FROM no_columns"), Step(out, Kind.COPY_OUT, tags=("copy.out",)))


def _many_columns(rng: random.Random) -> tuple[Step, ...]:
    """Return rows of all columns or of two, perhaps with an option for each column."""
    numbers = range(between(rng, 1, 3))
    listed = pick(rng, ("", " (n, c7)"))
    fields = _MANY if not listed else 2
    options = pick(rng, ("", "FORMAT csv, FORCE_NULL *", "FORMAT csv, FORCE_NOT_NULL *"))
    lines = [("," if options else "\t").join(str(number) for _ in range(fields)) for number in numbers]
    written = WrittenCopy(f"many_columns{listed}", options, "\n".join(lines).encode(), "many_columns")
    return _written(written, "SELECT n, c7, c135 FROM many_columns")


def _volatile(rng: random.Random) -> tuple[Step, ...]:
    target, line, options = pick(
        rng,
        (("ticking (s)", "a", ""), ("ticking", "D\tD\ta", "DEFAULT 'D'"), ("ticking (m, s)", "D\ta", "DEFAULT 'D'")),
    )
    data = f"{line}\n" * between(rng, 1, 40)
    return _written(WrittenCopy(target, options, data.encode(), "volatile"), "SELECT n, m, s FROM ticking")


def _filling(rng: random.Random) -> tuple[Step, ...]:
    """Return NULLs and values of a NOT NULL domain, of which COPY skips the invalid ones, with and without notices."""
    lines = ("1,2", "2,x", "3,null", f"4,{'long' * 40}", "5,6")
    verbosity = pick(rng, (", LOG_VERBOSITY verbose", ", LOG_VERBOSITY verbose", ", LOG_VERBOSITY default", ""))
    form = pick(rng, ("DELIMITER ','", "FORMAT csv"))
    data = "\n".join(pick(rng, lines) for _ in range(between(rng, 2, 6)))
    written = WrittenCopy("filling", f"{form}, NULL 'null', ON_ERROR ignore{verbosity}", data.encode(), "filling")
    steps = _written(written, "SELECT id, v FROM filling")
    if not chance(rng, 40):
        return steps
    return Step("SET client_min_messages = error"), *steps, Step("RESET client_min_messages")


def _partition(rng: random.Random) -> tuple[Step, ...]:
    """Return a COPY into a partition, perhaps with a row of another partition."""
    fails = chance(rng, 40)
    data = "1\ta\n" * between(rng, 0, 40) + ("2\tb\n" if fails else "1\tc\n")
    return _written(WrittenCopy("halves_1", "", data.encode(), "partition", fails), "SELECT n, s FROM halves")


def _guarded(rng: random.Random) -> tuple[Step, ...]:
    """Return a COPY of a table with row security, which becomes a query if the role is an ordinary one."""
    source = pick(rng, ("guarded", "guarded (s)", "guarded (s, n)"))
    options = pick(rng, ("", " WITH (FORMAT csv, HEADER)", " WITH (NULL 'row 3')"))
    return (Step(f"COPY {source} TO STDOUT{options}", Kind.COPY_OUT, tags=("copy.out", "copy.out.guarded")),)


# The syntax before PostgreSQL 9.0.
_OLD: Final = (
    ("COPY two_columns FROM STDIN CSV HEADER", b"n,s\n1,a\n"),
    ("COPY two_columns FROM STDIN WITH CSV QUOTE AS '~' ESCAPE AS '!' FORCE NOT NULL s", b"1,~a!~~\n2,\n"),
    ("COPY two_columns FROM STDIN DELIMITER '|' NULL AS 'x'", b"1|x\n"),
    ("COPY two_columns FROM STDIN USING DELIMITERS '|' WITH NULL ''", b"1|\n"),
    ("COPY BINARY two_columns FROM STDIN", SIGNATURE + bytes(8) + TRAILER),
    ("COPY two_columns FROM STDIN ENCODING 'LATIN1'", b"1\t\xfc\n"),
    ("COPY (SELECT 1 AS n, 'a' AS s) TO STDOUT CSV FORCE QUOTE *", None),
    ("COPY (SELECT 1 AS n, 'a' AS s) TO STDOUT WITH CSV HEADER FORCE QUOTE s", None),
    ("COPY (SELECT 1 AS n, NULL AS s) TO STDOUT NULL 'x' DELIMITER ','", None),
    ("COPY (SELECT 1 AS n, 'a' AS s) TO STDOUT BINARY", None),
)


def _old_syntax(rng: random.Random) -> tuple[Step, ...]:
    sql, data = pick(rng, _OLD)
    kind = Kind.COPY_OUT if data is None else Kind.COPY_IN
    return (Step(sql, kind, copy_data=data, tags=("copy.old_syntax",)),)


SHAPES: Final[Weighted[Callable[[random.Random], tuple[Step, ...]]]] = Weighted(
    (3, _no_columns),
    (3, _many_columns),
    (2, _volatile),
    (3, _filling),
    (3, _partition),
    (3, _guarded),
    (2, _old_syntax),
    (3, client_encoded),
    (6, uneven_leaves),
)


def make_shape(rng: random.Random) -> tuple[Step, ...]:
    """Return COPYs of small tables, mostly with a query of their rows."""
    return SHAPES.pick(rng)(rng)
