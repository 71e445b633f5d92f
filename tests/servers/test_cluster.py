"""Tests of clusters: start and stop, CPU time, logs, and the end of their owner."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import LiteralString

import psutil
import psycopg
import pytest

from fuzz.errors import DiskFull, ServerError
from fuzz.servers import cluster as clusters
from fuzz.servers import owners
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster, log_text, shorten_log
from fuzz.servers.processes import processes_in
from tests.servers.disk import fill, of_limited_size

pytestmark = pytest.mark.servers


def connect(cluster: Cluster) -> psycopg.Connection[tuple[object, ...]]:
    kwargs = cluster.connect_kwargs
    return psycopg.connect(host=str(kwargs["host"]), port=cluster.port, user="postgres", application_name="me")


def query(cluster: Cluster, sql: LiteralString) -> str:
    with connect(cluster) as connection:
        row = connection.execute(sql).fetchone()
    assert row is not None
    return str(row[0])


def test_the_clusters_rules_decide_who_may_connect(cluster: Cluster) -> None:
    with connect(cluster) as connection:
        rules = connection.execute("SELECT type, user_name, auth_method, error FROM pg_hba_file_rules").fetchall()
    assert rules == [("local", ["+pgduel_relay"], "scram-sha-256", None), ("local", ["all"], "peer", None)]


def test_stop_and_start_keep_the_data(cluster: Cluster) -> None:
    with connect(cluster) as connection:
        connection.execute("CREATE TABLE t AS SELECT 42 AS a")
    cluster.stop()
    assert not cluster.alive()
    assert not processes_in(cluster.data)
    cluster.start()
    assert query(cluster, "SELECT a FROM t") == "42"


def test_restart_after_a_killed_postmaster(cluster: Cluster) -> None:
    with connect(cluster) as connection:
        connection.execute("CREATE TABLE t AS SELECT 42 AS a")
    os.kill(cluster.pid, signal.SIGKILL)
    wait_until(lambda: not cluster.alive())
    cluster.restart()
    assert query(cluster, "SELECT a FROM t") == "42"


def test_a_kill_leaves_not_even_a_busy_process(cluster: Cluster) -> None:
    with connect(cluster) as connection:
        connection.execute("BEGIN")
        cluster.kill9()
        assert not processes_in(cluster.data)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_cpu_time_covers_backends_that_ended(cluster: Cluster) -> None:
    before = cluster.cpu_seconds()
    with connect(cluster) as connection:
        pid = connection.info.backend_pid
        connection.execute("SELECT count(*) FROM generate_series(1, 5000000)")
    wait_until(lambda: not psutil.pid_exists(pid))
    during = cluster.cpu_seconds()
    assert during > before + 0.1
    cluster.restart()
    assert cluster.cpu_seconds() >= during


def test_log_lines_have_the_process_number(cluster: Cluster) -> None:
    offset = cluster.log_size()
    with connect(cluster) as connection:
        pid = connection.info.backend_pid
        connection.execute("DO $$ BEGIN RAISE WARNING 'seen'; END $$")
    assert f"{pid}|me|WARNING:  seen" in cluster.log_since(offset)


def test_of_a_huge_log_both_ends_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "_LOG_BYTES", 10)
    log = tmp_path / "log"
    assert log_text(log, 0) == ""
    log.write_text("before start\n" + "spam\n" * 100 + "the end\n")
    assert log_text(log, 7) == "start\nspam\nm\nthe end\n"
    log.write_text("before start, the end\n")
    assert log_text(log, 7) == "start, the end\n"


def test_a_long_log_frees_the_disk_of_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "_LOG_KEPT", 1 << 16)
    log = tmp_path / "log"
    log.write_text("spam\n" * 200_000 + "the end\n")
    size = log.stat().st_size
    shorten_log(log)
    assert log.stat().st_size == size
    assert log.stat().st_blocks * 512 < 1 << 18
    assert log_text(log, size - 8) == "the end\n"
    assert len(log_text(log, 0)) < 1 << 17


def test_a_full_disk_is_named_as_the_reason(build: Build, open_directory: Path) -> None:
    with of_limited_size(open_directory / "small", 4) as disk, pytest.raises(DiskFull, match=r"; make room there$"):
        Cluster(build, "small", directory=disk)
    with of_limited_size(open_directory / "disk", 200) as disk:
        full = Cluster(build, "full", directory=disk)
        try:
            full.log.write_text("an earlier start\n")  # its page has room for more lines
            fill(disk)
            with pytest.raises(ServerError, match="did not start: the disk is full; make room there"):
                full.start()
        finally:
            full.destroy()


def test_a_server_that_fills_its_log_at_the_start_is_stopped(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "_LOG_KEPT", 10_000)
    settings = {"restore_command": "echo waiting >&2; exit 1", "wal_retrieve_retry_interval": "1ms"}
    talkative = Cluster(build, "talkative", settings=settings | {"hot_standby": "off"})
    (talkative.data / "standby.signal").touch()  # it waits for WAL forever, and is never ready
    try:
        with pytest.raises(ServerError, match=r"server talkative did not start, but fills its log; the patch logs too"):
            talkative.start()
        assert not processes_in(talkative.data)
    finally:
        talkative.destroy()


def test_the_clusters_of_a_killed_owner_are_stopped(build: Build) -> None:
    program = (
        "import sys, time\n"
        "from fuzz.servers.build import list_builds\n"
        "from fuzz.servers.cluster import Cluster\n"
        f"build = next(build for build in list_builds() if build.key == {build.key!r})\n"
        "cluster = Cluster(build, 'orphan')\n"
        "cluster.start()\n"
        "print(cluster.data, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        data = Path(owner.stdout.readline().strip())
        owners.clean_up()
        assert processes_in(data)  # the owner still runs
        with owners.registry():  # no other pgduel may clean up now
            owner.kill()
            owner.wait()
            assert processes_in(data)
    owners.clean_up()
    assert not processes_in(data)
    assert not data.exists()


def test_an_owner_that_ends_stops_its_clusters(build: Build) -> None:
    program = (
        "from fuzz.servers.build import list_builds\n"
        "from fuzz.servers.cluster import Cluster\n"
        f"build = next(build for build in list_builds() if build.key == {build.key!r})\n"
        "cluster = Cluster(build, 'ending')\n"
        "cluster.start()\n"
        "print(cluster.data, cluster.pid)\n"
        "raise SystemExit('without closing anything')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    data, pid = done.stdout.split()
    assert not Path(data).exists()
    assert not psutil.pid_exists(int(pid))


def test_a_socket_in_use_is_refused(cluster: Cluster, build: Build) -> None:
    second = Cluster(build, "second", socket_dir=cluster.socket_dir)
    try:
        with pytest.raises(ServerError, match=r"server second did not start: the socket .* is in use"):
            second.start()
    finally:
        second.destroy()
    assert cluster.alive()
    assert query(cluster, "SELECT 1") == "1"  # the first keeps its socket


def test_the_error_about_a_missing_data_directory_names_it(cluster: Cluster) -> None:
    cluster.stop()
    cluster.data.rename(cluster.data.with_name("elsewhere"))
    with pytest.raises(ServerError, match=r"the data directory of server test, .*, is gone"):
        cluster.start()


def test_a_data_directory_deleted_under_a_server(cluster: Cluster) -> None:
    subprocess.run(["rm", "-rf", cluster.data], check=True)
    cluster.stop()
    assert not processes_in(cluster.data)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"work_mem": "a lot"}, 'invalid value for parameter "work_mem"'),
        ({"huge_pages": "on", "huge_page_size": "1GB"}, "not enough shared memory; see ./pgduel doctor"),
        (
            {"shared_preload_libraries": "absent"},
            'did not start: FATAL:  could not access file "absent": No such file [^/]+$',
        ),
    ],
)
def test_the_error_about_a_failed_start_has_the_reason(build: Build, settings: dict[str, str], message: str) -> None:
    broken = Cluster(build, "broken", settings=settings)
    try:
        with pytest.raises(ServerError, match=message):
            broken.start()
    finally:
        broken.destroy()


def test_the_server_user_must_be_able_to_enter(build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root starts servers as another user")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    monkeypatch.setenv("PGDUEL_HOME", str(closed))
    with pytest.raises(
        ServerError, match=r"who may not enter .*/closed/.*; set PGDUEL_HOME to a directory open to all"
    ):
        Cluster(build, "locked-out")


def test_a_long_path_still_has_a_socket(build: Build, open_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDUEL_HOME", str(open_directory / ("long" * 25)))
    with Cluster(build, "long") as cluster:
        assert query(cluster, "SELECT 1") == "1"
        socket_dir = cluster.socket_dir
    assert not socket_dir.exists()


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
