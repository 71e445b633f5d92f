"""Stores in PostgreSQL: a schema for each campaign, in a database that the members of a team share.

A schema has the tables of a SQLite file, and a table with their version. So no query has to name its campaign, and each
campaign is migrated alone. Messages have the database's name, never a password.
"""

import atexit
import os
import re
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from hashlib import sha256
from multiprocessing.connection import wait
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection, Executable, Table, create_engine, text
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.exc import DBAPIError, SQLAlchemyError, StatementError

from fuzz.campaign.schema import (
    VERSION,
    StoreError,
    StoreFull,
    StoreUnreachable,
    create_tables,
    migrate,
    require_readable,
)
from fuzz.errors import first_line
from fuzz.store_url import VARIABLE, store_url

_PREFIX: Final = "campaign_"
_LOCK_TIMEOUT: Final = 2000  # ms, in which another process may end
_TURN: Final = "next campaign"  # in place of a campaign's name, of which none has a space
_TURN_TIMEOUT: Final = 60_000  # ms, in which the processes before this one may end their transactions
_KEEPALIVES: Final = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}
_DEFAULTS: Final = _KEEPALIVES | {  # of libpq's parameters; a server whose machine is gone is noticed after a minute
    "client_encoding": "utf8",
    "connect_timeout": "10",
    "tcp_user_timeout": "60000",
}
_EXISTS: Final = ("42P06", "23505")  # a schema, or that of another process, which was faster
_NO_TABLE: Final = "42P01"
_LOCKED: Final = "55P03"
_LOST: Final = ("08", "57P")  # connections that ended, or servers that start or end
_FULL: Final = "53100"
_ADVICE: Final = {"42501": "; docs/campaigns.md has the rights that a team's roles need"}
_HOLDER: Final = text("""
    SELECT application_name FROM pg_stat_activity JOIN pg_locks USING (pid)
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND (classid::bigint << 32) | objid::bigint = :key
        AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())""")
_SIZE: Final = text("""
    SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class
    WHERE relnamespace = to_regnamespace(:schema) AND relkind = 'r'""")


class Server:
    """A database whose schemas are stores."""

    def __init__(self, url: str) -> None:
        """Connect nothing before the first use. Raises StoreError for another URL."""
        parameters = _parameters(url)
        process = f"process {os.getpid()} on {socket.gethostname()}"
        self.name = _name(parameters)
        self._arguments = _DEFAULTS | {"fallback_application_name": process} | parameters
        # an idle connection of a server that was restarted meanwhile is replaced
        self._engine = create_engine("postgresql+psycopg://", connect_args=self._arguments, pool_pre_ping=True)
        atexit.register(self._engine.dispose)

    @property
    def directory(self) -> str:
        """Return a file name for the database."""
        return re.sub(r"[^A-Za-z0-9_.]+", "-", self.name)

    @contextmanager
    def begin(self, schema: str) -> Iterator[Connection]:
        """Open a transaction in a schema, and commit it at the end. Raises SQLAlchemyError."""
        with self._engine.begin() as connection:
            connection.exec_driver_sql(f"SET LOCAL search_path = {schema}")
            yield connection

    @contextmanager
    def autocommit(self, schema: str | None = None) -> Iterator[Connection]:
        """Open a connection that commits each statement: two messages to the server, not five. Raises SQLAlchemyError.

        Tables without a schema are those of `schema`.
        """
        with self._engine.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT", schema_translate_map={None: schema})

    def session(self) -> psycopg.Connection:
        """Return a new session, which commits each statement. Raises psycopg.Error."""
        return psycopg.connect(**self._arguments, autocommit=True)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Convert exceptions of the driver and of SQLAlchemy into StoreError."""
        try:
            yield
        except (SQLAlchemyError, psycopg.Error) as error:
            raise _error(error, self.name) from error

    def require_usable(self) -> None:
        """Raise StoreError unless the role may create campaigns."""
        query = text("SELECT current_user, has_database_privilege(current_database(), 'CREATE')")
        with self.errors(), self.autocommit() as connection:
            role, allowed = connection.execute(query).one()
        if not allowed:
            raise StoreError(
                f"the store {self.name} cannot be used: role {role} has no right to create schemas in this database; "
                "grant it CREATE"
            )

    def numbers(self) -> list[int]:
        """Return the numbers of all campaigns, in ascending order. Raises StoreError."""
        query = text("SELECT nspname FROM pg_namespace WHERE nspname ~ :pattern")
        with self.errors(), self.autocommit() as connection:
            names = connection.execute(query, {"pattern": f"^{_PREFIX}[0-9]+$"}).scalars().all()
        return sorted(int(name.removeprefix(_PREFIX)) for name in names)

    def reserve(self) -> int:
        """Create the store of a new campaign, and return its number, one above the highest. Raises StoreError."""
        number = max(self.numbers(), default=0) + 1
        with self.errors():
            while not PostgreSQL(self, number).create():
                number += 1
        return number

    def holder(self, name: str) -> str:
        """Return the process that runs a campaign, given by number or name; "" if there is none. Raises StoreError."""
        with self.errors(), self.autocommit() as connection:
            return str(connection.execute(_HOLDER, {"key": _key(name)}).scalar() or "")


class PostgreSQL:
    """The schema of one campaign. It has the interface `Database`."""

    is_shared: Final = True

    def __init__(self, server: Server, number: int) -> None:
        """Connect nothing before the first use."""
        self._server = server
        self._schema = f"{_PREFIX}{number}"
        self.name = f"{self._schema} in {server.name}"
        self._number = str(number)
        self._claimed: tuple[str, ...] = ()
        self._session: psycopg.Connection | None = None  # that claims them

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """Open a transaction, and commit it at the end. Raises SQLAlchemyError, StoreError."""
        self._renew_claims()
        with self._server.begin(self._schema) as connection:
            yield connection

    def reading(self) -> AbstractContextManager[Connection]:
        """Open a connection for one query. Raises SQLAlchemyError."""
        return self._server.autocommit(self._schema)

    @contextmanager
    def in_turn(self) -> Iterator[Connection]:
        """Open a transaction, and commit it at the end. One campaign at a time has one.

        Raises SQLAlchemyError, StoreError.
        """
        with self.begin() as connection:
            self._lock(connection, _TURN, _TURN_TIMEOUT, f"{self.name} cannot begin", "begins a campaign")
            yield connection

    def insert(self, table: Table) -> Insert:
        """Return the statement that inserts into a table."""
        return insert(table)

    def locking(self, table: Table) -> tuple[Executable, ...]:
        """Return the statements after which no other transaction changes a table before this one ends."""
        return (text(f"LOCK TABLE {table.name} IN SHARE ROW EXCLUSIVE MODE"),)

    def prepare(self) -> None:
        """Create the tables of a new store, or migrate an older one. Raises StoreError for a newer one."""
        version = self._version()
        if version is None and not self.create():
            version = self._version()  # another process was faster
        if version is not None:
            require_readable(version, self.name)
            if version < VERSION:
                self._migrate()

    def _version(self) -> int | None:
        """Return the version of the store, or None if it has no tables."""
        try:
            with self._server.autocommit() as connection:
                return int(connection.exec_driver_sql(f"SELECT number FROM {self._schema}.version").scalar_one())
        except DBAPIError as error:
            if _state(error) == _NO_TABLE:
                return None
            raise

    def create(self) -> bool:
        """Create schema and tables, and return whether no other process was faster."""
        try:
            with self._server.begin(self._schema) as connection:
                connection.exec_driver_sql(f"CREATE SCHEMA {self._schema}")
                connection.exec_driver_sql("CREATE TABLE version (number INTEGER NOT NULL)")
                connection.exec_driver_sql(f"INSERT INTO version VALUES ({VERSION})")
                create_tables(connection)
        except DBAPIError as error:
            if _state(error) in _EXISTS:
                return False
            raise
        return True

    def _migrate(self) -> None:
        """Migrate a store that no other process has claimed, because an older pgduel needs the old tables."""
        with self._server.begin(self._schema) as connection:
            self._lock(connection, self._number, _LOCK_TIMEOUT, f"the store {self.name} cannot be migrated", "uses it")
            version = int(connection.exec_driver_sql("SELECT number FROM version").scalar_one())
            migrate(connection, version)
            connection.exec_driver_sql(f"UPDATE version SET number = {VERSION}")

    def _lock(self, connection: Connection, name: str, timeout: int, failing: str, doing: str) -> None:
        """Lock a name until the end of the transaction. After `timeout` ms, raises StoreError.

        `failing` is the first part of its message, and `doing` what the other process does.
        """
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {timeout}")
        try:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _key(name)})
        except DBAPIError as error:
            if _state(error) != _LOCKED:
                raise
            holder = self._server.holder(name)
            raise StoreError(f"{failing}: {holder} {doing}; try again when that has ended") from error

    def vacuum(self, *tables: Table) -> None:
        """Return the space of deleted rows to the disk."""
        names = ", ".join(f"{self._schema}.{table.name}" for table in tables)
        with self._server.autocommit() as connection:
            connection.exec_driver_sql(f"VACUUM {names}")

    def size(self) -> int:
        """Return the bytes on disk of its tables, with their indexes and large values."""
        with self._server.autocommit() as connection:
            return int(connection.execute(_SIZE, {"schema": self._schema}).scalar_one())

    def claim(self, *names: str) -> None:
        """Be the only process that runs this campaign, and has these names, until `close`. Raises StoreError."""
        self.close()
        claimed = (self._number, *names)
        self._session = _claiming(self._server, claimed)
        self._claimed = claimed

    def _renew_claims(self) -> None:
        """Claim the names again after a loss of the connection. Raises StoreUnreachable if another process has one."""
        if self._session is not None and wait([self._session.fileno()], timeout=0):
            self._end_claims()  # an idle session has something to read if its server has ended it
        if self._claimed and self._session is None:
            try:
                self._session = _claiming(self._server, self._claimed)
            except StoreError as error:
                raise StoreUnreachable(str(error)) from error

    def error(self, error: SQLAlchemyError) -> StoreError:
        """Return the error of a store for one of SQLAlchemy. Claims end with the connection."""
        converted = _error(error, self.name)
        if isinstance(converted, StoreUnreachable):
            self._end_claims()
        return converted

    def _end_claims(self) -> None:
        if self._session is not None:
            self._session.close()
        self._session = None

    def close(self) -> None:
        """Give up the claims. Other stores have the same connections, which end with the process."""
        self._claimed = ()
        self._end_claims()


def _claiming(server: Server, names: tuple[str, ...]) -> psycopg.Connection:
    """Return a session with locks on numbers and names of campaigns. Raises StoreError if another one has any."""
    with server.errors():
        session = server.session()
        try:
            session.execute(f"SET lock_timeout = {_LOCK_TIMEOUT}".encode())
            # else the server keeps the locks of a machine that is gone for hours
            for setting, seconds in _KEEPALIVES.items():
                session.execute(f"SET tcp_{setting} = {seconds}".encode())
            for name in names:
                try:
                    session.execute("SELECT pg_advisory_lock(%s)", (_key(name),))
                except psycopg.errors.LockNotAvailable as error:
                    holder = server.holder(name)
                    raise StoreError(f"campaign {name} runs already: {holder}; stop it there first") from error
        except BaseException:
            session.close()
            raise
        return session


def _key(name: str) -> int:
    """Return the key of the advisory lock on a campaign, by its number or name, or on the next one."""
    return int.from_bytes(sha256(f"pgduel campaign {name}".encode()).digest()[:8], signed=True)


def _error(error: Exception, name: str) -> StoreError:
    """Return the error of a store for one of the driver or SQLAlchemy."""
    state, cause = _state(error), _cause(error)
    if isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError) and (not state or state.startswith(_LOST)):
        return StoreUnreachable(f"the store {name} does not answer ({_reason(cause)}); check its server and {VARIABLE}")
    if state == _FULL:
        return StoreFull(f"the store {name} cannot be used: {_reason(cause)}; make room there")
    return StoreError(f"the store {name} cannot be used: {_reason(cause)}{_ADVICE.get(state, '')}")


def _cause(error: Exception) -> BaseException:
    return error.orig or error if isinstance(error, StatementError) else error


def _state(error: Exception) -> str:
    """Return the SQLSTATE of a server's message; "" if an error has none, as those of the connection."""
    return getattr(_cause(error), "sqlstate", None) or ""


def _reason(cause: BaseException) -> str:
    """Return the reason for an error. libpq's messages name each address that it tried, the last one last."""
    lines = str(cause).splitlines()
    failed = [line.rpartition("failed: ")[2] for line in lines if "failed: " in line]
    return failed[-1] if failed else first_line("\n".join(lines))


def _parameters(url: str) -> dict[str, Any]:
    """Return libpq's parameters of a URL. Raises StoreError, which does not quote the URL because of its password."""
    found: dict[str, Any] | None = None
    with suppress(psycopg.Error):
        found = conninfo_to_dict(url) if url.startswith(("postgresql://", "postgres://")) else None
    # After an unescaped @ or / in a password, its rest would be part of the host or database.
    if found is None or any("@" in str(found.get(part, "")) for part in ("host", "port", "dbname")):
        raise StoreError(
            f"{VARIABLE} is no URL of a PostgreSQL database; give postgresql://USER@HOST/DATABASE, with %40 for an @ "
            "and %2F for a / of a password"
        )
    return found


def _name(parameters: dict[str, Any]) -> str:
    """Return a URL with server and database alone, for messages."""
    host, port, database = (str(parameters.get(part, "")) for part in ("host", "port", "dbname"))
    service = f"?service={parameters['service']}" if "service" in parameters else ""
    return f"postgresql://{host}{f':{port}' if port else ''}/{database}{service}"


@cache
def _server(url: str) -> Server:
    return Server(url)


def shared() -> Server | None:
    """Return the database of $PGDUEL_STORE, or None if it is not set. Raises StoreError."""
    url = store_url()
    return _server(url) if url else None


def has_password(url: str) -> bool:
    """Return whether a URL has a password. Raises StoreError."""
    return url != "" and not {"password", "sslpassword"}.isdisjoint(_parameters(url))
