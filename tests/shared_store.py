"""Databases for shared stores, on a server of the tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest

from fuzz.servers.cluster import Cluster

_NUMBERS = count(1)
ON_POSTGRESQL = (pytest.mark.servers, pytest.mark.quick)
BOTH = ("sqlite", pytest.param("postgresql", marks=ON_POSTGRESQL))


def url_of(server: Cluster, database: str, **parameters: str) -> str:
    """Return the URL of a database, with parameters of libpq."""
    return f"postgresql:///{database}?{urlencode(server.connect_kwargs | {'dbname': database} | parameters)}"


def execute(server: Cluster, statement: str, **parameters: Any) -> None:
    """Execute a statement outside a transaction."""
    with psycopg.connect(**(server.connect_kwargs | parameters), autocommit=True) as connection:
        connection.execute(statement.encode())


@contextmanager
def new_database(server: Cluster) -> Iterator[str]:
    """Yield the name of a new database, which is deleted even if it is in use."""
    name = f"store_{next(_NUMBERS)}"
    execute(server, f"CREATE DATABASE {name}")
    try:
        yield name
    finally:
        execute(server, f"DROP DATABASE {name} WITH (FORCE)")
