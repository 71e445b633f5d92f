"""Running SQLancer against a server, and what it logged there."""

import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

from fuzz.errors import CaseError
from fuzz.servers.relay import relay
from fuzz.sources.sqlancing.options import ENTRY_DATABASE, LOGS, Call

DOING: Final = "-cur"  # ends the name of the log of all statements
_OURS: Final = "SELECT datname FROM pg_database WHERE starts_with(datname, %s)"
_GRACE: Final = 60  # seconds beyond its own limit until it counts as hung


@dataclass(frozen=True, slots=True)
class Server:
    """A server's Unix socket, as PostgreSQL's clients name it."""

    host: str
    port: int

    def connect(self) -> psycopg.Connection[Any]:
        """Open an administrator's session. Raises psycopg.OperationalError."""
        return psycopg.connect(host=self.host, port=self.port, user="postgres", dbname="postgres", autocommit=True)


def run(server: Server, classpath: str, call: Call, prefix: str) -> Mapping[str, str]:
    """Run SQLancer on a server, which it may crash, in databases of its own. Return its logs by name.

    Names are those of databases, with DOING where the log is of what it does. Raises CaseError, ServerError,
    psycopg.OperationalError.
    """
    _make_entry(server)
    with tempfile.TemporaryDirectory(prefix="pgduel-sqlancer-") as directory:
        try:
            with relay(Path(server.host) / f".s.PGSQL.{server.port}") as port:
                output = _output(call.command(classpath, port, prefix), directory, call.seconds + _GRACE)
            found = {path.stem: path.read_text(errors="replace") for path in Path(directory, LOGS).glob("*.log")}
        finally:
            _drop(server, prefix)
    if not found:
        raise CaseError(f"SQLancer does not run: {(output.strip().splitlines() or ['it says nothing'])[-1]}")
    return dict(sorted(found.items()))


def _output(command: list[str], directory: str, seconds: int) -> str:
    """Return what it printed, as far as it got: its logs are what counts."""
    with Path(directory, "output").open("w+", errors="replace") as output:
        with subprocess.Popen(command, cwd=directory, stdout=output, stderr=subprocess.STDOUT) as process:
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
            except BaseException:
                process.kill()
                raise
        output.seek(0)
        return output.read()


def _make_entry(server: Server) -> None:
    made = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(ENTRY_DATABASE))
    there = suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation)  # from an earlier run
    with closing(server.connect()) as connection, there:
        connection.execute(made)


def _drop(server: Server, prefix: str) -> None:
    """Drop its databases, unless it crashed the server a moment ago."""
    with suppress(psycopg.OperationalError), closing(server.connect()) as connection:
        for (name,) in connection.execute(_OURS, [prefix]).fetchall():
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
