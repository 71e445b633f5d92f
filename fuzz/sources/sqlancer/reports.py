"""Cases from reports of SQLancer: the statements that created its database, then the two queries that differ.

Each oracle of SQLancer has its own wording. All reports of wrong results reduce to two queries that must have equal
rows. Other reports (an error that SQLancer does not expect, a lost connection) are replayed for pgduel's oracles.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

import pglast
import psycopg
from pglast import ast

from fuzz.sources.determinism.analysis import Unanalysable, doubts
from fuzz.sources.determinism.catalog import Catalog
from fuzz.sources.source import SourceContext
from fuzz.sources.sqlancer.logs import Log, scene_of
from oracles.model.case import Case, Kind, SameRows, Step

_COUNTS: Final = re.compile(r"the counts mismatch.*?\n-- (.*?);\n-- count: -?\d+\n-- (.*?);\n-- count:", re.DOTALL)
_RESULTS: Final = re.compile(r"the results mismatch!\n-- (.*?);\n-- result: .*?\n-- (.*?);\n-- result:", re.DOTALL)
_SIZES: Final = re.compile(
    r'The size of the result sets mismatch .*?First query: "(.*?)", whose cardinality is: \d+\s+'
    r'Second query: ?"(.*)", whose cardinality is',
    re.DOTALL,
)
_CONTENTS: Final = re.compile(
    r'The content of the result sets mismatch!\s+First query ?: ?"(.*?)"\s+'
    r'Second query: ?"-- Query: "(.*)"; It misses: ',
    re.DOTALL,
)
_PIVOT: Final = re.compile(r"SELECT \* FROM \(SELECT .*\) as result WHERE ", re.DOTALL)
_PIVOT_FOUND: Final = "SELECT true"  # result of a query for an existing pivot row
_THROWN: Final = re.compile(r"\AThrowable|\A[\w.]+(?:Error|Exception): (.*?)(?:\nCaused by: |\Z)", re.DOTALL)
_EXPLAINED: Final = re.compile(r"EXPLAIN (?:\([^)]*\) )?(SELECT .*?); --\d+", re.DOTALL)


def equal_queries(log: Log) -> tuple[str, str] | None:
    """Return the two queries that must have equal rows according to the report, or None."""
    complaint = log.complaint
    if found := _COUNTS.search(complaint):
        return _counted(found[1]), f"SELECT coalesce(sum(count), 0)::bigint FROM ({found[2]}) AS q (count)"
    if found := _RESULTS.search(complaint):
        return found[1], found[2]
    if found := _SIZES.search(complaint) or _CONTENTS.search(complaint):
        return found[1], _together(found[2])
    last = log.statements[-1] if log.statements else ""
    if _PIVOT.match(last):
        return f"SELECT count(*) > 0 FROM ({last}) AS q", _PIVOT_FOUND
    return None


def _counted(sql: str) -> str:
    """Return a query for the number that NoREC reads from its optimized query: its count, or its number of rows."""
    counts = re.match(r"SELECT (ALL )?COUNT\(\*\)", sql, re.IGNORECASE)
    return f"SELECT {'sum(n)::bigint' if counts else 'count(*)'} FROM ({sql}) AS q{' (n)' if counts else ''}"


def _together(sql: str) -> str:
    """Return one query for the combined rows of several queries."""
    queries = _split(sql)
    return sql if len(queries) < 2 else " UNION ALL ".join(f"({each})" for each in queries)


def _split(sql: str) -> Sequence[str]:
    try:
        return pglast.split(sql)
    except pglast.Error:
        return ()


def named(log: Log) -> tuple[str, ...]:
    """Return the statements in a report of an error or a lost connection."""
    thrown = _THROWN.search(log.complaint)
    found = [*_EXPLAINED.findall(log.complaint), *filter(None, [thrown[1] if thrown else ""])]
    return tuple(sql for text in found for sql in _split(text))


def case_of(log: Log, target: SourceContext) -> Case:
    """Return the case of a report. Raises CaseError, ServerError."""
    with target.session(()) as connection:
        catalog = Catalog.of(connection)
    pair = equal_queries(log)
    scene = scene_of(tuple(sql for sql in log.statements if not sql.startswith("SELECT")), catalog)
    with target.session(scene) as connection:
        sound = pair is not None and not any(_doubtful(connection, catalog, sql) for sql in pair)
    left, *right = [_step(sql) for sql in pair or named(log)] or [Step("SELECT", Kind.QUERY)]
    if sound:
        right = [Step(each.sql, Kind.QUERY, may_fail=True, same_rows=_reason(each.sql)) for each in right]
    return Case("sqlancer", scene, (left, *right))


def _reason(sql: str) -> SameRows:
    return SameRows.BY_CONTENT if sql == _PIVOT_FOUND else SameRows.BY_MEANING


def _doubtful(connection: psycopg.Connection[Any], catalog: Catalog, sql: str) -> bool:
    try:
        return bool(doubts(connection, catalog, sql))
    except Unanalysable:
        return True


def _step(sql: str) -> Step:
    try:
        reads = isinstance(pglast.parse_sql(sql)[0].stmt, ast.SelectStmt)
    except (pglast.parser.ParseError, IndexError):
        reads = False
    return Step(sql, Kind.QUERY if reads else Kind.COMMAND, may_fail=True)
