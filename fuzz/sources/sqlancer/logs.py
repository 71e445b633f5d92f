"""SQLancer's log files: scenes from their statements, without nondeterministic ones, and cases from their reports.

A log has one statement per line, after a report if there is one. A line break within a statement is logged as a
backslash and "n". It cannot be distinguished from these characters, so it is left unchanged.

Each oracle of SQLancer has its own wording. All reports of wrong results reduce to two queries that must have equal
rows. Other reports (an error that SQLancer does not expect, a lost connection) are replayed for pgduel's oracles.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pglast
import psycopg
from pglast import ast

from fuzz.sources.determinism.analysis import Unanalysable, doubts
from fuzz.sources.determinism.catalog import Catalog
from fuzz.sources.scripts.facts import facts_of
from fuzz.sources.scripts.psql import Sent
from fuzz.sources.scripts.steps import StepConverter
from fuzz.sources.source import SourceContext
from oracles.model.case import Case, Kind, SameRows, Step
from oracles.sql.parsing import parse_statements

_HEAD: Final = re.compile(r"^(?:--)?-- (Time|Database|Database version|seed value): .*$", re.MULTILINE)
_SEED: Final = re.compile(r"^-- seed value: (\d+)$", re.MULTILINE)
_TRACE: Final = re.compile(r"\t(at |\.\.\. )")
_DATABASE_STATEMENTS: Final = re.compile(r"(DROP|CREATE) DATABASE\b", re.IGNORECASE)
_ENDING: Final = re.compile(r"(;|\\[nr]|\s)+$")
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


@dataclass(frozen=True, slots=True)
class SqlancerLog:
    """A log file. `error` is the reported error, or "" in a log of executed statements."""

    seed: int
    statements: tuple[str, ...]
    error: str


def read_log(text: str) -> SqlancerLog:
    """Return the parsed log, without statements about whole databases."""
    heads = list(_HEAD.finditer(text))
    top, rest = (text[: heads[0].start()], text[heads[-1].end() :]) if heads else ("", text)
    seed = _SEED.search(text)
    return SqlancerLog(int(seed[1]) if seed else 0, tuple(_statements(rest)), _error(top))


def divided(log: SqlancerLog) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the statements before the first query, and the rest."""
    first = next((n for n, sql in enumerate(log.statements) if sql.startswith("SELECT")), len(log.statements))
    return log.statements[:first], log.statements[first:]


def _statements(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        sql = _ENDING.sub("", line).strip()
        if sql and not sql.startswith(("--", "\\")) and not _DATABASE_STATEMENTS.match(sql):
            yield sql


def _error(text: str) -> str:
    """Return the exception and its causes, without stack traces. In the log, each line is a comment."""
    lines = (line.removeprefix("--") for line in text.splitlines())
    return "\n".join(line for line in lines if not _TRACE.match(line)).strip()


_MAINTAINS: Final = (ast.ClusterStmt, ast.ReindexStmt, ast.VacuumStmt)


def scene_of(statements: Iterable[str], catalog: Catalog) -> tuple[Step, ...]:
    """Return the statements that create a database, as steps. Any may fail, and many do."""
    converter = StepConverter(catalog, lambda _: None)
    lasting = (Sent(sql, None, 0) for sql in statements if not _depends_on_chance(sql, catalog))
    return tuple(step for sent in lasting if (step := converter.step(sent)) is not None)


def _depends_on_chance(sql: str, catalog: Catalog) -> bool:
    """Return whether a statement calls a nondeterministic function, or prints times and counts (VERBOSE)."""
    try:
        trees = parse_statements(sql)
    except pglast.parser.ParseError:
        return False
    calls = {call for tree in trees for call in facts_of(tree.stmt).calls}
    return any(catalog.unfit(call.name, call.arguments) for call in calls) or any(
        _prints_figures(tree.stmt) for tree in trees
    )


def _prints_figures(tree: Any) -> bool:
    """Return whether a statement prints its duration and other figures."""
    options = getattr(tree, "options", None) or getattr(tree, "params", None) or ()
    return isinstance(tree, _MAINTAINS) and any(option.defname == "verbose" for option in options)


def equal_queries(log: SqlancerLog) -> tuple[str, str] | None:
    """Return the two queries that must have equal rows according to the report, or None."""
    error = log.error
    if found := _COUNTS.search(error):
        return _counted(found[1]), f"SELECT coalesce(sum(count), 0)::bigint FROM ({found[2]}) AS q (count)"
    if found := _RESULTS.search(error):
        return found[1], found[2]
    if found := _SIZES.search(error) or _CONTENTS.search(error):
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


def named(log: SqlancerLog) -> tuple[str, ...]:
    """Return the statements in a report of an error or a lost connection."""
    thrown = _THROWN.search(log.error)
    found = [*_EXPLAINED.findall(log.error), *filter(None, [thrown[1] if thrown else ""])]
    return tuple(sql for text in found for sql in _split(text))


def case_of(log: SqlancerLog, target: SourceContext) -> Case:
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
        reads = isinstance(parse_statements(sql)[0].stmt, ast.SelectStmt)
    except (pglast.parser.ParseError, IndexError):
        reads = False
    return Step(sql, Kind.QUERY if reads else Kind.COMMAND, may_fail=True)
