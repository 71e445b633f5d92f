"""The database of a worker on one arm, made from a template, and an administrative connection to another database."""

import hashlib
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

from fuzz.errors import ServerError, first_line
from fuzz.execution import messages
from fuzz.execution.exchanges import Exchange
from fuzz.execution.modes.roles import ROLE, ROLE_MADE
from fuzz.execution.serverlog import ServerLog
from fuzz.execution.wire import Wire
from fuzz.servers.account import server_account
from fuzz.servers.arm import Arm
from fuzz.servers.cluster import Cluster
from fuzz.servers.sessions import session

TEMPLATE: Final = "duel_template"
TOOLS: Final = Path(__file__).with_name("tools.sql")
TEMPLATE_EXTENSIONS: Final = ("postgres_fdw", "btree_gist")
ADMIN_DATABASE: Final = "postgres"
# in the admin database, because reading pins must not pin pages of the case's database
ADMIN_EXTENSION: Final = "pg_buffercache"
RENEW_AFTER: Final = 200  # runs until a database is renewed, because dropped tables bloat its catalogs
RECOVERY_SECONDS: Final = 5.0
RECOVERY_PAUSE: Final = 0.03
ROOM: Final = 100 << 20  # bytes that a server needs: two segments of WAL, and temporary files of a few cases

_TEMPLATE_LOCK = 24071  # advisory lock, so that only one of several starting workers creates the template


def is_full(cluster: Cluster) -> bool:
    """Return whether a server's disk is full."""
    return shutil.disk_usage(cluster.data).free < ROOM


def no_room(arm: str, cluster: Cluster) -> str:
    """Return the message for an arm whose disk is full."""
    return f"the disk of server {arm} is full; make room for {cluster.data}"


class WorkerDatabase:
    """A worker's database on one arm. A new database takes about 50 ms on an assert build."""

    def __init__(self, arm: Arm, worker: str) -> None:
        """Create the database. Raises ServerError."""
        self.arm = arm.name
        self.cluster = arm.cluster
        self.database = f"duel_{worker}"
        self.database_oid = 0
        self.uses = 0  # runs since the database was created
        # whether a run was cut off, so that the server may be down and the database not empty
        self.needs_reset = False
        self.executable = arm.build.bindir / "postgres"
        self.directories = {  # the arm's own directories, and their replacements in messages
            str(arm.build.prefix): "INSTALLATION",
            str(arm.cluster.data): "DATA",
            str(arm.cluster.socket_dir): "SOCKETS",
        }
        self.log = ServerLog(arm.cluster.log)
        self._admin: Wire | None = None
        self._prepare_template()
        self.renew()
        self.settings = self._known_settings()

    def _known_settings(self) -> frozenset[str]:
        """Return the names of the arm's settings, in lower case. Raises ServerError."""
        try:
            with self._psycopg(ADMIN_DATABASE) as admin:
                return frozenset(name for (name,) in admin.execute("SELECT lower(name) FROM pg_settings"))
        except psycopg.Error as error:
            raise ServerError(f"cannot list the settings of arm {self.arm}: {first_line(str(error))}") from error

    def connect(self, parameters: dict[str, str]) -> Wire:
        """Return a new session. Raises ServerError if no server listens."""
        return Wire(self.cluster.socket_dir, self.cluster.port, parameters)

    def admin_query(self, text: str, params: Sequence[str] = ()) -> Exchange[list[list[str | None]]]:
        """Run one statement in the admin database, and return its rows. Raises ServerError."""
        if self._admin is None or self._admin.lost:
            self._hang_up()
            self._admin = self.connect({"user": "postgres", "database": ADMIN_DATABASE, "application_name": "pgduel"})
        admin = self._admin
        admin.send(messages.parse("", text) + messages.bind("", params) + messages.execute() + messages.SYNC, 1)
        yield admin
        if not admin.settled or admin.lost:
            admin.close()
            raise ServerError(f"arm {self.arm} does not answer any more; see its log, {self.cluster.log}")
        reply = admin.take_replies()[-1]
        for kind, payload in reply.others:
            if kind == messages.ERROR_RESPONSE:
                raise ServerError(f"arm {self.arm} refuses pgduel's own query: {messages.message_of(payload).text}")
        return [messages.values_of(row) for row in reply.rows]

    def make_ready(self) -> Exchange[None]:
        """Restart the server if it is down, and renew the database if it is not empty or bloated.

        Raises ServerError.
        """
        if self.needs_reset:
            yield from self.recover()
        if self.needs_reset or self.uses >= RENEW_AFTER:
            self.renew()

    def _hang_up(self) -> None:
        if self._admin is not None:
            self._admin.close()

    def renew(self) -> None:
        """Drop the database with its content, and create it again. Raises ServerError."""
        name = sql.Identifier(self.database)
        try:
            with self._psycopg(ADMIN_DATABASE) as admin:
                admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
                admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(name, sql.Identifier(TEMPLATE)))
                admin.execute(sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(name, sql.Identifier(ROLE)))
                row = admin.execute("SELECT oid FROM pg_database WHERE datname = %s", (self.database,)).fetchone()
            assert row is not None
            self.database_oid = row[0]
            self._point_loopback()
        except psycopg.Error as error:
            words = f"cannot make database {self.database} on arm {self.arm}: {first_line(str(error))}"
            raise self.no_room() if self.is_full() else ServerError(words) from error
        self.uses = 0
        self.needs_reset = False

    def is_full(self) -> bool:
        """Return whether the server's disk is full."""
        return is_full(self.cluster)

    def no_room(self) -> ServerError:
        """Return the error for a full disk."""
        return ServerError(no_room(self.arm, self.cluster))

    def _point_loopback(self) -> None:
        options = {"host": str(self.cluster.socket_dir), "port": str(self.cluster.port), "dbname": self.database}
        settings = sql.SQL(", ").join(
            sql.SQL("SET {} {}").format(sql.Identifier(option), sql.Literal(value)) for option, value in options.items()
        )
        with self._psycopg(self.database) as connection:
            connection.execute(sql.SQL("ALTER SERVER loopback OPTIONS ({})").format(settings))

    def recover(self) -> Exchange[None]:
        """Wait until the server accepts connections; restart it if it is down. Raises ServerError.

        If another process owns the server and has to restart it, wait for that.
        """
        self._hang_up()
        deadline = time.monotonic() + RECOVERY_SECONDS
        while time.monotonic() < deadline:
            if (yield from self._answers()):
                return
            if not self.cluster.alive():
                with suppress(ServerError):
                    self.cluster.restart()
                    continue
            yield RECOVERY_PAUSE
        self.cluster.restart()

    def _answers(self) -> Exchange[bool]:
        try:
            probe = self.connect({"user": "postgres", "database": ADMIN_DATABASE})
        except ServerError:
            return False
        with closing(probe):
            yield probe
            return bool(probe.replies)

    def close(self) -> None:
        """Drop the database, if the server is running."""
        self._hang_up()
        if not self.cluster.alive():
            return
        try:
            with self._psycopg(ADMIN_DATABASE) as admin:
                name = sql.Identifier(self.database)
                admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
        except psycopg.OperationalError:
            return  # the server just went down

    def _psycopg(self, database: str) -> AbstractContextManager[psycopg.Connection[Any]]:
        return session(self.cluster.connect_kwargs | {"dbname": database}, autocommit=True)

    def _prepare_template(self) -> None:
        """Create the template once per cluster.

        Its comment, set last, marks it as complete, and identifies the tools.
        """
        digest = hashlib.sha256(TOOLS.read_bytes()).hexdigest()
        try:
            with self._psycopg(ADMIN_DATABASE) as admin:
                admin.execute("SELECT pg_advisory_lock(%s)", (_TEMPLATE_LOCK,))
                found = admin.execute(
                    "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s", (TEMPLATE,)
                ).fetchone()
                if found is None or found[0] != digest:
                    self._make_template(admin, digest)
        except psycopg.Error as error:
            raise ServerError(f"cannot prepare databases on arm {self.arm}: {first_line(str(error))}") from error

    def _make_template(self, admin: psycopg.Connection[Any], digest: str) -> None:
        name = sql.Identifier(TEMPLATE)
        admin.execute(sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(sql.Identifier(ADMIN_EXTENSION)))
        admin.execute(ROLE_MADE)
        admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
        admin.execute(sql.SQL("CREATE DATABASE {}").format(name))
        with self._psycopg(TEMPLATE) as connection:
            for extension in TEMPLATE_EXTENSIONS:
                connection.execute(sql.SQL("CREATE EXTENSION {}").format(sql.Identifier(extension)))
            connection.execute(TOOLS.read_bytes())
            connection.execute("VACUUM ANALYZE")
        admin.execute(sql.SQL("COMMENT ON DATABASE {} IS {}").format(name, sql.Literal(digest)))

    def temporary_files(self, pid: int) -> tuple[str, ...]:
        """Return the names of a backend's temporary files and file sets, without its process number."""
        prefix = f"pgsql_tmp{pid}."
        with server_account().file_access():
            places = [self.cluster.data / "base" / "pgsql_tmp", *self.cluster.data.glob("pg_tblspc/*/*/pgsql_tmp")]
            names = [entry for place in places if place.is_dir() for entry in os.listdir(place)]
        return tuple(sorted(name.removeprefix(prefix) for name in names if name.startswith(prefix)))
