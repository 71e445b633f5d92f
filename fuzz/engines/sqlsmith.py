"""External runs of SQLsmith, which executes its statements on one arm, to find crashes and internal errors.

The server logs each statement before it executes it. So the log contains the statements of a process that died, and a
statement that raised an internal error. They become cases, which are judged again, because another process may have
caused the death.
"""

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pglast import ast
from pglast.parser import ParseError
from psycopg.conninfo import make_conninfo

from fuzz.errors import CaseError, last_line
from fuzz.execution.serverlog import Entry, crash_of, deaths, split
from fuzz.servers.cluster import Cluster
from fuzz.sources.sqlsmith import PROGRAM
from oracles.crash import Crash
from oracles.internal_error import CLASS, InternalError, template_of
from oracles.model.case import Case, Kind, Step
from oracles.sql.parsing import parse_statements

_LOGGED: Final = "-c log_statement=all -c log_error_verbosity=verbose"
_STATEMENT: Final = re.compile(r"LOG:  00000: (?:statement|execute <unnamed>): (.*)", re.DOTALL)
_INTERNAL: Final = re.compile(rf"ERROR:  {CLASS}[0-9A-Z]{{3}}: (.*)")
# SQLsmith sends these statements around each query.
_WRAPPERS: Final = re.compile(r"(begin|commit|rollback|set)\b", re.IGNORECASE)
# Numbers of statements before a crash in a case. The first case that crashes suffices.
_KEPT: Final = (1, 10, 300)


@dataclass(frozen=True, slots=True)
class Smith:
    """The parameters of a run of SQLsmith."""

    seed: int
    queries: int

    def command(self, cluster: Cluster, database: str, options: str = "") -> list[str]:
        """Return the command line for a database, with additional options of its sessions."""
        server = make_conninfo(
            host=str(cluster.socket_dir),
            port=cluster.port,
            user="postgres",
            dbname=database,
            options=options,
        )
        counted = [f"--seed={self.seed}", f"--max-queries={self.queries}"]
        return [PROGRAM, f"--target={server}", "--exclude-catalog", *counted]


@dataclass(frozen=True, slots=True)
class Failure:
    """A crash or internal error: the oracle that judges such failures, SQLsmith's statements, and the log's report."""

    oracle: str
    statements: tuple[str, ...]
    report: str


@dataclass(frozen=True, slots=True)
class Ran:
    """The results of a run.

    `deaths` has all statements of each process that died, in order; `errors` has a statement for each internal error.
    """

    statements: int
    deaths: tuple[Failure, ...]
    errors: tuple[Failure, ...] = ()


def run(smith: Smith, cluster: Cluster, database: str, seconds: float, options: str = "") -> Ran:
    """Run SQLsmith until it ends or for `seconds`. Raises CaseError if it executes no statement."""
    offset = cluster.log_size()
    output = execute(smith, cluster, database, seconds, f"{_LOGGED} {options}".strip())
    found = ran(split(cluster.log_since(offset)), cluster.build.bindir / "postgres")
    if not found.statements:
        raise CaseError(f"SQLsmith does not run: {last_line(output, 'no output')}")
    return found


def execute(smith: Smith, cluster: Cluster, database: str, seconds: float, options: str = "") -> str:
    """Run SQLsmith until it ends or for `seconds`, and return its error output."""
    process = subprocess.Popen(
        smith.command(cluster, database, options), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        _, output = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        _, output = process.communicate()
    except BaseException:
        process.kill()
        process.communicate()
        raise
    return output


def ran(entries: Sequence[Entry], executable: Path) -> Ran:
    """Return the results of SQLsmith's sessions in the log of a server, whose program names places in backtraces."""
    sent: dict[int, list[str]] = {}
    errors: dict[str, Failure] = {}
    for entry in entries:
        if logged := _STATEMENT.match(entry.text):
            sent.setdefault(entry.pid, []).append(_unindented(logged[1]))
        elif (internal := _INTERNAL.match(entry.text)) and entry.pid in sent:
            failure = Failure(InternalError.name, (sent[entry.pid][-1],), internal[0])
            errors.setdefault(template_of(internal[1]), failure)
    dead = deaths(entries)
    died = [dead.leaders.get(pid, pid) for pid in dead.lines]
    drawn = sum(not _WRAPPERS.match(sql) for statements in sent.values() for sql in statements)
    crashed = tuple(
        Failure(Crash.name, tuple(sent[pid]), crash_of(pid, entries, executable) or "")
        for pid in dict.fromkeys(died)
        if pid in sent
    )
    return Ran(drawn, crashed, tuple(errors.values()))


def _unindented(text: str) -> str:
    """Return a statement as it was sent: the log inserts a tab before each continuation line."""
    return text.replace("\n\t", "\n")


def cases(scene: Sequence[Step], sent: Sequence[str]) -> Iterator[Case]:
    """Yield cases with the last 1, 10 and 300 statements of a process."""
    steps = [_step(sql.strip().rstrip(";")) for sql in sent]
    kept = [step for step in steps if step is not None]
    for count in dict.fromkeys(min(count, len(kept)) for count in _KEPT if kept):
        yield Case("sqlsmith", tuple(scene), tuple(kept[-count:]))


def _step(sql: str) -> Step | None:
    """Return the step of a statement, or None for SQLsmith's own settings. SQLsmith rolls back each statement."""
    try:
        statements = parse_statements(sql)
    except ParseError:
        return Step(sql, may_fail=True)
    if len(statements) != 1 or isinstance(statements[0].stmt, ast.VariableSetStmt):
        return None
    kind = Kind.QUERY if isinstance(statements[0].stmt, ast.SelectStmt) else Kind.COMMAND
    return Step(sql, kind, may_fail=True)
