"""Recovery: waiting for a crashed server, or restarting it."""

import time
from contextlib import suppress
from typing import Final

import psycopg

from fuzz.servers.cluster import Cluster

_SECONDS: Final = 10.0
_PAUSE: Final = 0.05


def await_connections(cluster: Cluster) -> None:
    """Wait until the server accepts connections; restart it if necessary. Raises ServerError."""
    if not cluster.alive() or not _answers(cluster):
        cluster.restart()


def _answers(cluster: Cluster) -> bool:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        with suppress(psycopg.OperationalError):
            psycopg.connect(**cluster.connect_kwargs).close()  # type: ignore[arg-type]  # host is a str
            return True
        time.sleep(_PAUSE)
    return False
