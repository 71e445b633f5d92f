"""Sessions of pgduel's own statements with a limit of time, because a patched server may hang and ignore timeouts."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event
from typing import Any, Final

import psycopg

from fuzz.servers.timers import repeated_after

_CONNECT_SECONDS: Final = 30
_SECONDS: Final = 300.0  # of a whole session, which may load data on a busy machine


@contextmanager
def session(parameters: dict[str, Any], *, autocommit: bool = False) -> Iterator[psycopg.Connection[Any]]:
    """Open a session, and cut its connection after some minutes. Raises psycopg.OperationalError, then too."""
    connecting = psycopg.connect(**parameters, autocommit=autocommit, connect_timeout=_CONNECT_SECONDS)
    with connecting as connection, _limited(connection, _SECONDS):
        yield connection


@contextmanager
def _limited(connection: psycopg.Connection[Any], seconds: float) -> Iterator[None]:
    """Cut the connection after some seconds, so that whoever waits for it gets psycopg.OperationalError."""
    over = Event()
    with socket.socket(fileno=os.dup(connection.fileno())) as own:

        def cut() -> None:
            over.set()
            with suppress(OSError):  # the server has ended it
                own.shutdown(socket.SHUT_RDWR)

        try:
            with repeated_after(seconds, cut):
                yield
        except psycopg.OperationalError as error:
            if over.is_set():
                raise psycopg.OperationalError(f"the server did not answer within {seconds:g} s") from error
            raise
