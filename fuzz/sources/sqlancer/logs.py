"""SQLancer's log files, and scenes from their statements, without nondeterministic ones.

A log has one statement per line, after a report if there is one. A line break within a statement is logged as a
backslash and "n". It cannot be distinguished from these characters, so it is left unchanged.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pglast
from pglast import ast

from fuzz.sources.determinism.catalog import Catalog
from fuzz.sources.scripts.facts import facts_of
from fuzz.sources.scripts.psql import Sent
from fuzz.sources.scripts.steps import Stager
from oracles.model.case import Step

_HEAD: Final = re.compile(r"^(?:--)?-- (Time|Database|Database version|seed value): .*$", re.MULTILINE)
_SEED: Final = re.compile(r"^-- seed value: (\d+)$", re.MULTILINE)
_TRACE: Final = re.compile(r"\t(at |\.\.\. )")
_DATABASE_STATEMENTS: Final = re.compile(r"(DROP|CREATE) DATABASE\b", re.IGNORECASE)
_ENDING: Final = re.compile(r"(;|\\[nr]|\s)+$")


@dataclass(frozen=True, slots=True)
class Log:
    """A log file. `complaint` is the reported error, or "" in a log of executed statements."""

    seed: int
    statements: tuple[str, ...]
    complaint: str


def read_log(text: str) -> Log:
    """Return the parsed log, without statements about whole databases."""
    heads = list(_HEAD.finditer(text))
    top, rest = (text[: heads[0].start()], text[heads[-1].end() :]) if heads else ("", text)
    seed = _SEED.search(text)
    return Log(int(seed[1]) if seed else 0, tuple(_statements(rest)), _complaint(top))


def divided(log: Log) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the statements before the first query, and the rest."""
    first = next((n for n, sql in enumerate(log.statements) if sql.startswith("SELECT")), len(log.statements))
    return log.statements[:first], log.statements[first:]


def _statements(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        sql = _ENDING.sub("", line).strip()
        if sql and not sql.startswith(("--", "\\")) and not _DATABASE_STATEMENTS.match(sql):
            yield sql


def _complaint(text: str) -> str:
    """Return the exception and its causes, without stack traces. In the log, each line is a comment."""
    lines = (line.removeprefix("--") for line in text.splitlines())
    return "\n".join(line for line in lines if not _TRACE.match(line)).strip()


_MAINTAINS: Final = (ast.ClusterStmt, ast.ReindexStmt, ast.VacuumStmt)


def scene_of(statements: Iterable[str], catalog: Catalog) -> tuple[Step, ...]:
    """Return the statements that create a database, as steps. Any may fail, and many do."""
    stager = Stager(catalog, lambda _: None)
    lasting = (Sent(sql, None, 0) for sql in statements if not _depends_on_chance(sql, catalog))
    return tuple(step for sent in lasting if (step := stager.step(sent)) is not None)


def _depends_on_chance(sql: str, catalog: Catalog) -> bool:
    """Return whether a statement calls a nondeterministic function, or prints times and counts (VERBOSE)."""
    try:
        trees = pglast.parse_sql(sql)
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
