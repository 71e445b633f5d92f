"""Loopback connections: postgres_fdw and dblink connect to their own database.

The remote session is another backend of the same server. A session must not access tables behind its foreign tables
directly while it may hold locks. It would wait for its own remote session, and the deadlock detector cannot detect
that.

The application_name of the remote session contains the process number of the session that opened it. The remote session
logs its statements, which oracles read.
"""

from typing import Final

LED_BY: Final = "duel led by "  # prefix of the remote session's application_name, before the process number
GUEST: Final = "duel_guest"  # a role without privileges of its own
PENDING: Final = "duel.pending"  # setting: the statement that another session executes next

SERVER: Final = "duel_loop"
SECOND: Final = "duel_loop_too"
_SCHEMA = "duel"  # the schema of every case
_LOGGING = "-c log_statement=all -c log_parameter_max_length=0"

# The server computes the host and port itself, so the options' text is equal on all arms.
_EXTENSION = "CREATE EXTENSION IF NOT EXISTS postgres_fdw"
_MADE = (
    "DO $$ BEGIN {0}EXECUTE format('CREATE SERVER {4} FOREIGN DATA WRAPPER postgres_fdw"
    " OPTIONS (host %L, port %L, dbname %L, application_name %L, options %L)',"
    " split_part(current_setting('unix_socket_directories'), ',', 1),"
    f" current_setting('port'), current_database(), '{LED_BY}%p{{5}}', '{_LOGGING}');"
    " EXECUTE format('CREATE USER MAPPING FOR {1} SERVER {4} OPTIONS ({2})', {3}); END $$"
)
_AS_ONESELF = ("", "CURRENT_USER", "user %L", "current_user")
PROLOGUE: Final = (_EXTENSION, _MADE.format(*_AS_ONESELF, SERVER, ""))
# A second server, with a remote session of its own. Each server has its own application_name.
SECOND_PROLOGUE: Final = (_MADE.format(*_AS_ONESELF, SECOND, " too"),)

# Functions that another session executes and commits: dblink connects to the own database for one statement, or for the
# pending one, once. A session must not wait for locks of the one that waits for it.
CONNECTION: Final = (  # an expression: dblink's connection string
    "format('host=%L port=%L dbname=%L application_name=%L options=%L',"
    " split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'), current_database(),"
    f" '{LED_BY}' || pg_backend_pid(), '-csearch_path={_SCHEMA},public')"
)
ELSEWHERE: Final = (
    "CREATE EXTENSION IF NOT EXISTS dblink",
    "CREATE FUNCTION elsewhere(statement text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN"
    f" PERFORM dblink_exec({CONNECTION}, statement); RETURN 0; END $$",
    "CREATE FUNCTION elsewhere_pending() RETURNS int LANGUAGE plpgsql AS $$ DECLARE"
    f" pending text := current_setting('{PENDING}', true); BEGIN"
    f" IF pending <> '' THEN PERFORM set_config('{PENDING}', '', false), elsewhere(pending); END IF;"
    " RETURN 0; END $$",
)

# Roles are global, and cases run in several databases at once. So the first case creates the role, and it stays.
#
# CREATE ROLE is part of the block that creates the server. Otherwise reduction could drop it as superfluous, because an
# earlier case left the role behind.
_GUEST_MADE = (
    f"BEGIN CREATE ROLE {GUEST} LOGIN;"
    f" GRANT SET ON PARAMETER log_statement, log_parameter_max_length TO {GUEST};"
    " EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END; "
)
# The same as PROLOGUE, but the remote session runs as the guest role, with the privileges granted to it.
GUEST_PROLOGUE: Final = (
    _EXTENSION,
    _MADE.format(_GUEST_MADE, "PUBLIC", "user %L, password_required %L", f"'{GUEST}', 'false'", SERVER, ""),
    f"GRANT USAGE ON SCHEMA {_SCHEMA} TO {GUEST}",
)


def foreign_table(name: str, shape: str, there: str, *options: str, server: str = SERVER) -> str:
    """Return the CREATE FOREIGN TABLE statement, to run after the prologue of its server.

    `shape` is a list of columns or a PARTITION OF clause; `there` is the name of the remote table.
    """
    given = ", ".join((f"schema_name '{_SCHEMA}'", f"table_name '{there}'", *options))
    return f"CREATE FOREIGN TABLE {name} {shape} SERVER {server} OPTIONS ({given})"


def server_option(option: str, value: str, server: str = SERVER) -> str:
    """Return a statement that sets an option of a server, if the arm's postgres_fdw supports the option."""
    return _if_known(f"ALTER SERVER {server} OPTIONS", option, value)


def table_option(table: str, option: str, value: str) -> str:
    """Return a statement that sets an option of a foreign table, if the arm's postgres_fdw supports the option."""
    return _if_known(f"ALTER FOREIGN TABLE {table} OPTIONS", option, value)


def _if_known(alter: str, option: str, value: str) -> str:
    """Return a DO block that adds or changes an option.

    It ignores an unknown option; an invalid value raises an error on the server.
    """
    return (
        f"DO $$ BEGIN {alter} (ADD {option} '{value}');"
        f" EXCEPTION WHEN duplicate_object THEN {alter} (SET {option} '{value}');"
        " WHEN fdw_invalid_option_name THEN NULL; END $$"
    )
