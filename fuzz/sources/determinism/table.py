"""The table of functions by name (oracles/sql/functions.txt), from which oracles read whether a query is deterministic.

Oracles have no server, so they read a query's text with this table. After a change of functions.sql or names.sql, renew
it: `python -m fuzz.sources.determinism.table`.
"""

from pathlib import Path
from typing import Any, Final

import psycopg

from fuzz.output import note
from fuzz.servers.base import resolve_base
from fuzz.servers.build import ensure_build
from fuzz.servers.cluster import Cluster
from fuzz.servers.flavor import FLAVORS
from fuzz.sources.determinism.catalog import JUDGED
from oracles.sql import determinism
from oracles.sql.distinguishable_values import MAY_HOLD_INEXACT

FILE: Final = Path(determinism.__file__).with_name("functions.txt")
_NAMES: Final = JUDGED + Path(__file__).with_name("names.sql").read_text()


def table(connection: psycopg.Connection[Any]) -> str:
    """Return the table of a server's functions. Raises psycopg.Error."""
    return "".join(f"{line}\n" for (line,) in connection.execute(_NAMES, [sorted(MAY_HOLD_INEXACT)]))


def main() -> None:
    """Write the table of PostgreSQL 17."""
    build = ensure_build(resolve_base("pg17", note).tree, FLAVORS["assert"], note)
    with Cluster(build, "table") as cluster, psycopg.connect(**cluster.connect_kwargs) as connection:  # type: ignore[arg-type]
        FILE.write_text(table(connection))


if __name__ == "__main__":
    main()
