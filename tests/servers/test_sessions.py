"""Tests of sessions of pgduel's own statements, on servers that do not answer."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from fuzz.errors import ServerError
from fuzz.servers import sessions
from fuzz.servers.arm import Arm, require_same_initdb
from fuzz.servers.cluster import Cluster
from fuzz.servers.sessions import session

pytestmark = [pytest.mark.servers, pytest.mark.timeout(120)]


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Stop a process meanwhile, so that it reacts to nothing."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_session_whose_backend_hangs_is_cut(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_SECONDS", 1.0)
    with (
        pytest.raises(psycopg.OperationalError, match="the server did not answer within 1 s"),
        session(cluster.connect_kwargs) as connection,
        stopped(connection.info.backend_pid),
    ):
        connection.execute("SELECT 1")


def test_a_session_that_answers_is_not_cut(cluster: Cluster) -> None:
    with session(cluster.connect_kwargs) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert connection.closed


def test_arms_whose_sessions_hang_are_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_CONNECT_SECONDS", 2)
    arm = Arm("test", cluster.build, cluster, ())
    with (
        stopped(cluster.pid),
        pytest.raises(ServerError, match="the server of arm test starts, but its sessions fail: connection timeout"),
    ):
        require_same_initdb([arm])
