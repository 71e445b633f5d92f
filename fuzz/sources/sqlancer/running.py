"""Execution of SQLancer on a server, and its logs.

SQLancer is a jar that the user names, or the artifact that Maven downloaded to the cache.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg
from filelock import FileLock
from psycopg import sql

from fuzz import workdir
from fuzz.errors import CaseError, last_line
from fuzz.servers.relay import relay
from fuzz.sources.sqlancer.logs import SqlancerLog, read_log
from fuzz.sources.sqlancer.options import (
    ARTIFACT,
    COORDINATES,
    ENTRY_DATABASE,
    EXECUTED,
    GROUP,
    LOGS,
    VERSION,
    SqlancerRun,
    argument_file,
)

JAR_VARIABLE: Final = "PGDUEL_SQLANCER_JAR"
_SECONDS: Final = 900  # for Maven, which downloads about 100 MB
_PROJECT: Final = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>pgduel</groupId><artifactId>pgduel</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>{GROUP}</groupId><artifactId>{ARTIFACT}</artifactId><version>{VERSION}</version></dependency>
  </dependencies>
</project>
"""


def lacking(jar: str | None) -> str:
    """Return a line about a missing prerequisite of SQLancer, or "". Downloads nothing."""
    if jar is not None and not Path(jar).is_file():
        return f"there is no jar {jar}; {JAR_VARIABLE} or --sqlancer-jar names SQLancer's"
    if not shutil.which("java"):
        return "there is no Java; as root, run: apt-get install default-jre-headless"
    if jar is not None or _fetched().is_dir():
        return ""
    return (
        f"its jar is not there: name it in {JAR_VARIABLE}, or run {workdir.COMMAND} sqlancer, which has Maven fetch it"
    )


def class_path(jar: str | None) -> str:
    """Return Java's class path. Raises CaseError if there is no jar."""
    if why := lacking(jar):
        raise CaseError(f"SQLancer cannot run: {why}")
    return jar or str(_fetched() / "*")


def fetch() -> None:
    """Download SQLancer and its dependencies with Maven, unless they are in the cache. Raises CaseError."""
    directory = _fetched()
    with FileLock(f"{directory}.lock"):
        if directory.is_dir():
            return
        draft = directory.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        (draft / "pom.xml").write_text(_PROJECT)
        _copy_dependencies(draft)
        os.replace(draft, directory)


def _copy_dependencies(draft: Path) -> None:
    command = ["mvn", "--quiet", "--batch-mode", "dependency:copy-dependencies", f"-DoutputDirectory={draft}"]
    otherwise = f"give the jar itself: --sqlancer-jar PATH, or {JAR_VARIABLE}"
    try:
        done = subprocess.run(command, cwd=draft, capture_output=True, text=True, timeout=_SECONDS)
    except FileNotFoundError as error:
        raise CaseError(f"there is no Maven to fetch {COORDINATES}; install it, or {otherwise}") from error
    except subprocess.TimeoutExpired as error:
        raise CaseError(f"Maven did not fetch {COORDINATES} in {_SECONDS} s; {otherwise}") from error
    if done.returncode:
        reasons = [line for line in (done.stdout + done.stderr).splitlines() if "Could not" in line] or [
            "no reason given"
        ]
        raise CaseError(
            f"Maven cannot fetch {COORDINATES} ({reasons[0].rpartition('Could not')[2].strip()}); {otherwise}"
        )


def _fetched() -> Path:
    return workdir.downloads() / f"{ARTIFACT}-{VERSION}"


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

    doing: Mapping[str, SqlancerLog]
    reports: Mapping[str, SqlancerLog]
    queries: int  # queries of SQLancer's oracles, according to its last message


def run(server: Server, classpath: str, call: SqlancerRun, prefix: str) -> Ran:
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
