"""Sessions of pgduel's own statements with a limit of time, because a patched server may hang and ignore timeouts."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any, Final

import psycopg

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
    over, cut = Event(), Event()
    watching = Thread(target=_watch, args=(os.dup(connection.fileno()), seconds, over, cut), daemon=True)
    watching.start()
    try:
        yield
    except psycopg.OperationalError as error:
        if cut.is_set():
            raise psycopg.OperationalError(f"the server did not answer within {seconds:g} s") from error
        raise
    finally:
        over.set()
        watching.join()


def _watch(descriptor: int, seconds: float, over: Event, cut: Event) -> None:
    """Shut down the socket of a descriptor after some seconds, unless `over` is set before; close the descriptor."""
    with socket.socket(fileno=descriptor) as own:
        if not over.wait(seconds):
            cut.set()
            with suppress(OSError):  # the server has ended it
                own.shutdown(socket.SHUT_RDWR)
