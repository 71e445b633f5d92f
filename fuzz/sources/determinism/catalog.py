"""Functions and operators of a database, with the properties that decide about determinism.

Oracles have no server, so they read a query's text with a table of functions by name (oracles/sql/functions.txt). After
a change of functions.sql or names.sql, renew it: `python -m fuzz.sources.determinism.catalog`.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import psycopg

from fuzz.output import note
from fuzz.servers.base import resolve_base
from fuzz.servers.build import ensure_build
from fuzz.servers.cluster import Cluster
from fuzz.servers.flavor import FLAVORS
from oracles.sql import determinism
from oracles.sql.distinguishable_values import MAY_HOLD_INEXACT

JUDGED: Final = Path(__file__).with_name("functions.sql").read_text()
_FUNCTIONS: Final = f"""{JUDGED}
    SELECT oid::int, proname::text, pronargs, prokind::text, fit, format_type(prorettype, NULL) FROM judged ORDER BY oid
"""
_NAMES: Final = JUDGED + Path(__file__).with_name("names.sql").read_text()
FILE: Final = Path(determinism.__file__).with_name("functions.txt")
_OPERATORS: Final = "SELECT oid::int, oprcode::oid::int FROM pg_operator"


@dataclass(frozen=True, slots=True)
class Function:
    """A function or aggregate. If it is `fit`, its result depends only on arguments, data and settings."""

    oid: int
    name: str
    arguments: int
    kind: str  # pg_proc.prokind: f, a, w or p
    fit: bool
    returns: str  # type name in SQL


@dataclass(frozen=True)
class Catalog:
    """The functions of a database by OID, and the functions of its operators by the operators' OIDs."""

    functions: Mapping[int, Function]
    operators: Mapping[int, int]

    @classmethod
    def of(cls, connection: psycopg.Connection[Any]) -> "Catalog":
        """Read the catalogs (about 10 ms). Raises psycopg.Error."""
        found = (Function(*row) for row in connection.execute(_FUNCTIONS))
        return cls({each.oid: each for each in found}, dict(connection.execute(_OPERATORS).fetchall()))

    def fit(self, oid: int) -> bool:
        """Return whether the function is deterministic. Unknown functions are not."""
        return oid in self.functions and self.functions[oid].fit

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, int], list[Function]]:
        found = defaultdict(list)
        for function in self.functions.values():
            found[function.name, function.arguments].append(function)
        return found

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the names of all functions."""
        return frozenset(name for name, _ in self._by_name)

    def unfit(self, name: str, arguments: int) -> list[Function]:
        """Return the functions that a call may resolve to, if none of them is fit; otherwise an empty list."""
        named = self._by_name.get((name, arguments), [])
        return [] if any(function.fit for function in named) else named


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
