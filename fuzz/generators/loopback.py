"""A foreign server that leads back to the same database.

What lies behind its tables is another backend of the same server, so a session never touches those itself where it
may hold locks: it would wait for itself, unseen by the deadlock detector.
"""

_SERVER = "duel_loop"
_SCHEMA = "duel"  # where every case runs

# The options have the same text on all arms: the server itself knows where it listens.
PROLOGUE = (
    "CREATE EXTENSION IF NOT EXISTS postgres_fdw",
    f"DO $$ BEGIN EXECUTE format('CREATE SERVER {_SERVER} FOREIGN DATA WRAPPER postgres_fdw"
    " OPTIONS (host %L, port %L, dbname %L)', split_part(current_setting('unix_socket_directories'), ',', 1),"
    f" current_setting('port'), current_database());"
    f" EXECUTE format('CREATE USER MAPPING FOR CURRENT_USER SERVER {_SERVER} OPTIONS (user %L)', current_user); END $$",
)


def foreign_table(name: str, shape: str, there: str, *options: str) -> str:
    """Return the statement that makes a foreign table, after PROLOGUE; `shape` is its columns, or whose partition."""
    given = ", ".join((f"schema_name '{_SCHEMA}'", f"table_name '{there}'", *options))
    return f"CREATE FOREIGN TABLE {name} {shape} SERVER {_SERVER} OPTIONS ({given})"
