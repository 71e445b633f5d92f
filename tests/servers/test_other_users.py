"""Tests of rights: other users cannot use a server, and nothing of a patch has root's rights."""

import os
import pwd
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from difflib import unified_diff
from pathlib import Path

import psycopg
import pytest

from fuzz import workdir
from fuzz.errors import BuildError, StorageError
from fuzz.servers import git
from fuzz.servers.account import Account, server_account
from fuzz.servers.base import Base
from fuzz.servers.build import Build, ensure_build
from fuzz.servers.cluster import Cluster
from fuzz.servers.flavor import FLAVORS
from fuzz.servers.processes import processes_in
from fuzz.servers.series import Patch, Series, apply_series
from tests.servers.rights import open_to_account

pytestmark = [pytest.mark.servers, pytest.mark.quick]

STRANGER = "nobody"
SECONDS_TO_STOP = 120.0  # other processes of a busy machine may hold the lock for changes of ownership
_CONNECT = "use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(Peer => shift) or die $!;"
# sends the startup message of protocol 3.0, and prints the server's reply
_LOG_IN = r'my $m = pack("N", 196608) . "user\0postgres\0\0"; print $s pack("N", 4 + length $m) . $m; print <$s>;'
_HOSTILE = "\n)\nrun_command('sh', '-c', 'id -u > {user}; touch {touched}', check: false)\nerror('no further')\n"

Stranger = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def stranger() -> Stranger:
    """Return a function that runs programs as an unrelated user of the machine."""
    if os.geteuid() == 0:
        entry = pwd.getpwnam(STRANGER)
        become = Account(STRANGER, entry.pw_uid, entry.pw_gid).options()
        return lambda *command: subprocess.run(command, capture_output=True, text=True, cwd="/", **become)
    if not shutil.which("sudo") or subprocess.run(["sudo", "-n", "-u", STRANGER, "true"]).returncode:
        pytest.skip("only root, or a caller with sudo, can become another user")
    sudo = ("sudo", "-n", "-u", STRANGER)
    return lambda *command: subprocess.run([*sudo, *command], capture_output=True, text=True, cwd="/")


@pytest.fixture
def closed(open_directory: Path) -> Path:
    """Create a file that only the caller may read and write, in a directory that all may enter."""
    file = open_directory / "closed"
    file.write_text("secret\n")
    file.chmod(0o600)
    return file


def test_strangers_cannot_connect(cluster: Cluster, stranger: Stranger) -> None:
    socket = str(cluster.socket_dir / f".s.PGSQL.{cluster.port}")
    assert "Permission denied" in stranger("perl", "-e", _CONNECT, socket).stderr


def test_strangers_are_no_role_even_if_they_reach_the_socket(build: Build, stranger: Stranger) -> None:
    with (
        open_to_account() as directory,
        Cluster(build, "open", settings={"unix_socket_permissions": "0777"}, socket_dir=directory) as cluster,
    ):
        socket = directory / f".s.PGSQL.{cluster.port}"
        refused = stranger("perl", "-e", _CONNECT + _LOG_IN, str(socket))
        assert "Peer authentication failed" in refused.stdout
        with psycopg.connect(**cluster.connect_kwargs) as connection:  # type: ignore[arg-type]  # host is a str
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_strangers_can_neither_read_nor_write_nor_signal(cluster: Cluster, stranger: Stranger) -> None:
    home = cluster.data.parent
    for path in (home, cluster.data, cluster.socket_dir, workdir.campaigns()):
        assert stranger("ls", str(path)).returncode, path
        assert stranger("touch", str(path / "file")).returncode, path
    for file in (cluster.log, cluster.data / "postgresql.conf"):
        assert stranger("cat", str(file)).returncode, file
    assert "ermitted" in stranger("sh", "-c", f"kill -0 {cluster.pid}").stderr


def test_a_build_script_has_no_rights_of_root(base: Base, closed: Path) -> None:
    account = server_account()
    user = account.make_private(closed.parent / "open") / "user"
    touched = (closed.parent if os.geteuid() == 0 else Path("/root")) / "touched"
    *_, tree = apply_series(base.tree, hostile_series(base, _HOSTILE.format(user=user, touched=touched)))
    with pytest.raises(BuildError, match="no further"):
        ensure_build(tree, FLAVORS["assert"], print)
    with account.file_access():
        assert int(user.read_text()) == account.uid != 0
    if os.geteuid() == 0:
        assert not touched.exists()


def hostile_series(base: Base, script: str) -> Series:
    """Return a series whose patch makes meson run commands."""
    old = git.show(base.tree, "meson.build") or ""
    new = old.replace("\n)\n", script, 1)  # the end of project()
    lines = unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), "a/meson.build", "b/meson.build")
    return Series("hostile", (Patch("hostile.patch", "".join(lines).encode()),))


def test_programs_of_a_server_cannot_write_where_pgduel_writes(cluster: Cluster) -> None:
    with psycopg.connect(**cluster.connect_kwargs, autocommit=True) as connection:  # type: ignore[arg-type]
        uid = connection.execute("CREATE TEMP TABLE t (a text); COPY t FROM PROGRAM 'id -u'; SELECT a FROM t")
        while uid.nextset():
            continue
        assert uid.fetchone() == (str(server_account().uid),)
        if os.geteuid() == 0:
            for path in (cluster.log, cluster.data.parent / "new", workdir.campaigns() / "new"):
                with pytest.raises(psycopg.errors.ExternalRoutineException):
                    connection.execute(f"COPY (SELECT 'x') TO PROGRAM 'cat >> {path}'")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights that a server lacks")
def test_a_link_that_a_server_plants_is_not_followed(cluster: Cluster, closed: Path) -> None:
    def plant(name: str) -> None:
        with psycopg.connect(**cluster.connect_kwargs, autocommit=True) as connection:  # type: ignore[arg-type]
            connection.execute(f"COPY (SELECT 1) TO PROGRAM 'ln -sf {closed} {name}'")

    plant("postgresql.conf")
    with pytest.raises(StorageError, match=r"postgresql\.conf \(Permission denied\)"):
        cluster.append_conf({"work_mem": "1MB"})
    assert closed.read_text() == "secret\n"
    closed.chmod(0o644)  # a file that all may read: a server must not write it
    with pytest.raises(StorageError):
        cluster.append_conf({"work_mem": "1MB"})
    assert closed.read_text() == "secret\n"


@pytest.fixture
def owner(build: Build, open_directory: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Start a process that owns a server; yield it and the data directory.

    Its cache is its own, so that no other process that starts a server cleans up after it.
    """
    (open_directory / "builds").symlink_to(workdir.builds())
    program = (
        "import time\n"
        "from fuzz.servers.build import list_builds\n"
        "from fuzz.servers.cluster import Cluster\n"
        f"build = next(build for build in list_builds() if build.key == {build.key!r})\n"
        "cluster = Cluster(build, 'watched')\n"
        "cluster.start()\n"
        "print(cluster.data, flush=True)\n"
        "time.sleep(600)\n"
    )
    environment = os.environ | {"PGDUEL_HOME": str(open_directory)}
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_servers_end_with_a_killed_owner(owner: tuple[subprocess.Popen[str], Path]) -> None:
    process, data = owner
    assert processes_in(data)
    process.kill()
    deadline = time.monotonic() + SECONDS_TO_STOP
    while (processes_in(data) or data.exists()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not processes_in(data)
    assert not data.exists()
