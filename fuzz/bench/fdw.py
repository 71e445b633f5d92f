"""The common part of the benches of mail 002: a table of the mail's width, and a foreign server that leads back."""

from collections.abc import Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Final

import psycopg
from psycopg import sql

from fuzz.bench.bench import UNDISTURBED, Connection
from fuzz.servers.arm import Arm

SUBJECT: Final = "postgres_fdw: using TABLESAMPLE to collect remote sample"
MESSAGE_ID: Final = "03182011-10a4-97b4-7c70-d99aa1c11eed@enterprisedb.com"
ROWS: Final = (10_000, 10_000_000)  # the mail also has 100 million, which do not fit into memory
METHODS: Final = ("off", "random", "system", "bernoulli", "auto")

SETTINGS: Final = MappingProxyType({**UNDISTURBED, "jit": "off", "max_parallel_workers_per_gather": "0"})

COLUMNS: Final = "id int8, a int4, b int4, c text"


def near(rows: int) -> str:
    """Return the name of the table with `rows` rows."""
    return f"near_{rows}"


def fill(connection: Connection, arm: Arm, sizes: Sequence[int]) -> None:
    """Create the tables, with about 180 bytes per row, and a foreign server that leads to them."""
    for rows in sizes:
        connection.execute(f"CREATE UNLOGGED TABLE {near(rows)} ({COLUMNS})")
        values = "g, g % 1000, (g::int8 * g % 100003)::int4, repeat(md5(g::text), 4)"
        connection.execute(f"INSERT INTO {near(rows)} SELECT {values} FROM generate_series(1, {rows}) AS g")
    connection.execute("VACUUM ANALYZE")
    connection.execute("CHECKPOINT")
    connection.execute("CREATE EXTENSION IF NOT EXISTS postgres_fdw")
    connection.execute(
        sql.SQL(
            "CREATE SERVER loop FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host {}, port {}, dbname 'postgres')"
        ).format(sql.Literal(str(arm.cluster.socket_dir)), sql.Literal(str(arm.cluster.port)))
    )
    connection.execute("CREATE USER MAPPING FOR CURRENT_USER SERVER loop OPTIONS (user 'postgres')")


def foreign_table(connection: Connection, name: str, there: str, method: str | None = None) -> None:
    """Create a foreign table, without the method if the arm's postgres_fdw lacks the option."""
    made = f"CREATE FOREIGN TABLE {name} ({COLUMNS}) SERVER loop OPTIONS (table_name '{there}'"
    if method is not None:
        with suppress(psycopg.errors.FdwInvalidOptionName):
            connection.execute(f"{made}, analyze_sampling '{method}')")
            return
    connection.execute(f"{made})")
