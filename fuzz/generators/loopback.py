"""A foreign server that leads back to the same database.

What lies behind its tables is another backend of the same server, so a session never touches those itself where it
may hold locks: it would wait for itself, unseen by the deadlock detector.

The remote session's name says who opened it, and it logs what it is asked, for oracles to see.
"""

from typing import Final

LED_BY: Final = "duel led by "  # starts the remote session's application_name; the process that opened it follows
GUEST: Final = "duel_guest"  # a role without privileges of its own

_SERVER = "duel_loop"
_SCHEMA = "duel"  # where every case runs
_LOGGING = "-c log_statement=all -c log_parameter_max_length=0"

# The options have the same text on all arms: the server itself knows where it listens.
_EXTENSION = "CREATE EXTENSION IF NOT EXISTS postgres_fdw"
_MADE = (
    f"DO $$ BEGIN {{}}EXECUTE format('CREATE SERVER {_SERVER} FOREIGN DATA WRAPPER postgres_fdw"
    f" OPTIONS (host %L, port %L, dbname %L, application_name %L, options %L)',"
    " split_part(current_setting('unix_socket_directories'), ',', 1),"
    f" current_setting('port'), current_database(), '{LED_BY}%p', '{_LOGGING}');"
    f" EXECUTE format('CREATE USER MAPPING FOR {{}} SERVER {_SERVER} OPTIONS ({{}})', {{}}); END $$"
)
PROLOGUE: Final = (_EXTENSION, _MADE.format("", "CURRENT_USER", "user %L", "current_user"))

# Roles belong to all databases of a server, and cases run in several at once: the first makes it, for good. It is made
# with the foreign server, so that no smaller case does without it because an earlier one left it there.
_GUEST_MADE = (
    f"BEGIN CREATE ROLE {GUEST} LOGIN;"
    f" GRANT SET ON PARAMETER log_statement, log_parameter_max_length TO {GUEST};"
    " EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END; "
)
# The same, but whoever asks is the guest over there, who may read what it was granted.
GUEST_PROLOGUE: Final = (
    _EXTENSION,
    _MADE.format(_GUEST_MADE, "PUBLIC", "user %L, password_required %L", f"'{GUEST}', 'false'"),
    f"GRANT USAGE ON SCHEMA {_SCHEMA} TO {GUEST}",
)


def foreign_table(name: str, shape: str, there: str, *options: str) -> str:
    """Return the statement that makes a foreign table, after PROLOGUE; `shape` is its columns, or whose partition."""
    given = ", ".join((f"schema_name '{_SCHEMA}'", f"table_name '{there}'", *options))
    return f"CREATE FOREIGN TABLE {name} {shape} SERVER {_SERVER} OPTIONS ({given})"


def server_option(option: str, value: str) -> str:
    """Return the statement that sets an option of the server, if the arm's postgres_fdw knows it."""
    return _if_known(f"ALTER SERVER {_SERVER} OPTIONS", option, value)


def table_option(table: str, option: str, value: str) -> str:
    """Return the statement that sets an option of a foreign table, if the arm's postgres_fdw knows it."""
    return _if_known(f"ALTER FOREIGN TABLE {table} OPTIONS", option, value)


def _if_known(alter: str, option: str, value: str) -> str:
    """Return a block that sets an option, whether it has a value or none; a value that is refused is an error."""
    return (
        f"DO $$ BEGIN {alter} (ADD {option} '{value}');"
        f" EXCEPTION WHEN duplicate_object THEN {alter} (SET {option} '{value}');"
        " WHEN fdw_invalid_option_name THEN NULL; END $$"
    )
