"""Execution of SQLancer on a server, and its logs."""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

from fuzz.errors import CaseError, last_line
from fuzz.servers.relay import relay
from fuzz.sources.sqlancer.logs import Log, read_log
from fuzz.sources.sqlancer.options import ENTRY_DATABASE, EXECUTED, LOGS, Call, argument_file

_STATEMENT_LOG: Final = "-cur"  # suffix of the names of logs of executed statements
_DATABASES: Final = "SELECT datname FROM pg_database WHERE starts_with(datname, %s)"
# Java's exit status. SQLancer's own status is 0, or 255 after a report.
_DID_NOT_START: Final = 1
_GRACE: Final = 60  # seconds after SQLancer's own time limit, before it is killed


@dataclass(frozen=True, slots=True)
class Server:
    """A server's Unix socket, as libpq addresses it."""

    host: str
    port: int

    def connect(self) -> psycopg.Connection[Any]:
        """Return a new superuser session. Raises psycopg.OperationalError."""
        return psycopg.connect(host=self.host, port=self.port, user="postgres", dbname="postgres", autocommit=True)


@dataclass(frozen=True, slots=True)
class Ran:
    """The results of a run: logs of executed statements by database, and logs of reports."""

    doing: Mapping[str, Log]
    reports: Mapping[str, Log]
    queries: int  # queries of SQLancer's oracles, according to its last message


def run(server: Server, classpath: str, call: Call, prefix: str) -> Ran:
    """Run SQLancer on a server, in databases of its own. It may crash the server.

    Raises CaseError, ServerError, psycopg.OperationalError.
    """
    _make_entry(server)
    with tempfile.TemporaryDirectory(prefix="pgduel-sqlancer-") as directory:
        with relay(Path(server.host), server.port) as login:
            try:
                command = command_of(call.arguments(classpath, login, prefix), Path(directory))
                status, output = _ended(command, directory, call.seconds + _GRACE)
            finally:
                _drop(server, prefix)
        found = {path.stem: path.read_text(errors="replace") for path in Path(directory, LOGS).glob("*.log")}
    if status == _DID_NOT_START:
        raise CaseError(f"SQLancer does not run: {last_line(output, 'no output')}")
    logs = {name: read_log(text) for name, text in sorted(found.items())}
    return Ran(
        {name.removesuffix(_STATEMENT_LOG): log for name, log in logs.items() if name.endswith(_STATEMENT_LOG)},
        {name: log for name, log in logs.items() if not name.endswith(_STATEMENT_LOG)},
        max(map(int, EXECUTED.findall(output)), default=0),
    )


def command_of(arguments: list[str], directory: Path) -> list[str]:
    """Return a command that reads the arguments from a new file, because other users can see command lines."""
    path = directory / "arguments"
    path.touch(mode=0o600)
    path.write_bytes(os.fsencode(argument_file(arguments)))
    return ["java", f"@{path}"]


def _ended(command: list[str], directory: str, seconds: int) -> tuple[int, str]:
    """Return the exit status and output. After a timeout, both are incomplete, but only the logs are needed."""
    with Path(directory, "output").open("w+", errors="replace") as output:
        with subprocess.Popen(command, cwd=directory, stdout=output, stderr=subprocess.STDOUT) as process:
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            except BaseException:
                process.kill()
                raise
        output.seek(0)
        return process.returncode, output.read()


def _make_entry(server: Server) -> None:
    made = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(ENTRY_DATABASE))
    there = suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation)  # it exists from an earlier run
    with closing(server.connect()) as connection, there:
        connection.execute(made)


def _drop(server: Server, prefix: str) -> None:
    """Drop SQLancer's databases, unless the server just crashed."""
    with suppress(psycopg.OperationalError), closing(server.connect()) as connection:
        for (name,) in connection.execute(_DATABASES, [prefix]).fetchall():
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
