"""Cluster: one running server of a build, deleted with its owner. Method names are those of PostgreSQL's TAP tests."""

import ctypes
import functools
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from ctypes import c_int64
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from fuzz import workdir
from fuzz.errors import SHOWN, ServerError
from fuzz.servers import modules, owners
from fuzz.servers.account import server_account
from fuzz.servers.build import Build
from fuzz.servers.coverage import PROFILES
from fuzz.servers.flavor import PROFILE_FILE
from fuzz.servers.owners import remove_segment_of
from fuzz.servers.processes import cpu_seconds_in, kill_all_in, runs_in
from fuzz.servers.settings import FUZZING, HBA, ident, lines
from fuzz.servers.template import copy_data, template
from fuzz.servers.timers import repeated_after

PROBE = "pgduel_probe"
_SOCKET_LIMIT = 107 - len("/.s.PGSQL.65535")
_START_SECONDS = 120  # recovery of a sanitized server is slow
_STOPS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}
_STOP_SECONDS = 20
_RECOVERY_SECONDS = 10.0
_RECOVERY_PAUSE = 0.05
_LOG_BYTES = 32 << 20  # read of each end of a log, which a patched server may fill
_LOG_KEPT = 256 << 20  # bytes at the end of a log that stay on the disk, which may be memory
_LOG_PAUSE = 5.0  # seconds after which a log is first shortened
_NO_SHARED_MEMORY = f"there is not enough shared memory; see {workdir.COMMAND} doctor"
_CAUSES = (  # the server's message -> cause and remedy; the first one counts
    ("No space left on device", "the disk is full; make room there"),
    ("Address already in use", "the socket or port is in use by another server; stop that server"),
    ("lock file", "the socket or data directory is in use by another server; stop that server"),
    ("could not map anonymous shared memory", _NO_SHARED_MEMORY),
    ("could not create shared memory segment", _NO_SHARED_MEMORY),
    ("could not resize shared memory segment", _NO_SHARED_MEMORY),
)


@functools.cache
def fixed_addresses() -> tuple[str, ...]:
    """Return the command that starts a program without address space randomization, if the system allows it.

    Servers hash pointers (resowner.c does). With random addresses, a bug may show after one start and not after the
    next, and a finding would replay only sometimes.
    """
    command = ("setarch", "--addr-no-randomize")
    tried = subprocess.run([*command, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return command if tried.returncode == 0 else ()


_PREFIX = re.compile(r"^\d+\|[^|]*\|")  # settings.FUZZING["log_line_prefix"]
_BLOCK = 512  # bytes of st_blocks, see stat(2)
_PUNCH_HOLE = 3  # FALLOC_FL_KEEP_SIZE and FALLOC_FL_PUNCH_HOLE, see fallocate(2)
_LIBC = ctypes.CDLL(None)
_SHUT_DOWN = "LOG:  database system is shut down"


def _why_failed(log: str) -> str:
    """Return the cause of a failed start from the server's log, and a remedy if there is one."""
    lines = [_PREFIX.sub("", line[:SHOWN]) for line in log.splitlines()]
    for symptom, cause in _CAUSES:
        if found := next((line for line in lines if symptom in line), ""):
            return f"{cause} ({found})"
    return " / ".join([line for line in lines if line != _SHUT_DOWN][-3:]) or "its log is empty"


class Cluster:
    """A data directory and its postmaster, which listens on a Unix socket only.

    The caller and the account of servers may connect, as any role and without a password; see settings.HBA.
    """

    def __init__(
        self,
        build: Build,
        name: str,
        *,
        settings: dict[str, str] | None = None,
        directory: Path | None = None,
        socket_dir: Path | None = None,
        data: Path | None = None,
    ) -> None:
        """Create a cluster, in workdir.clusters() or another directory, without starting it.

        `settings` override settings.FUZZING. `data` is the data directory of a stopped server, to be copied; without
        it, the cluster is empty. Raises ServerError, StorageError.
        """
        self.build = build
        self.name = name
        self.port = 5432
        self._account = server_account()
        self._process: subprocess.Popen[bytes] | None = None
        self._spent = 0.0
        self._shortening = ExitStack()
        self._settings = settings or {}
        self._owner = owners.claim(name, directory or workdir.clusters(), self.destroy)
        self._home = self._owner.home
        self.data = self._home / "data"
        self.log = self._home / "log"
        self.coverage = self._home / "coverage"  # profiles of a build in flavor coverage
        self.socket_dir = socket_dir or self._short_directory()
        with self._or_gone():
            self._init(data)

    def __enter__(self) -> Self:
        with self._or_gone():
            self.start()
        return self

    @contextmanager
    def _or_gone(self) -> Iterator[None]:
        """Delete a server that cannot be created or started, because a lack of space may be the reason."""
        try:
            yield
        except BaseException:
            self.destroy()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.destroy()

    def _short_directory(self) -> Path:
        directory = self._home / "s"
        if len(str(directory)) > _SOCKET_LIMIT:
            directory = Path(tempfile.mkdtemp(prefix="pgduel-"))
            self._account.give(directory)
            return directory
        with workdir.writing(directory):
            return self._account.make_private(directory)

    def _init(self, data: Path | None) -> None:
        self._account.lend(self._home)
        self._account.require_entry(self._home)
        if PROFILE_FILE in self.build.flavor.environment:
            self._account.make_private(self.coverage)
        copy_data(data or template(self.build, self._account), self._account, self.data)
        self._write("pg_hba.conf", HBA)
        self._write("pg_ident.conf", ident(self._account.system_users()))
        modules.ensure_module(self.build, PROBE)
        library_path = f"$libdir:{modules.modules_directory(self.build)}"
        paths = {"unix_socket_directories": str(self.socket_dir), "dynamic_library_path": library_path}
        paths["shared_preload_libraries"] = PROBE
        self.append_conf(FUZZING | paths | {"port": str(self.port)} | self._settings)

    def append_conf(self, settings: dict[str, str]) -> None:
        """Add settings to postgresql.conf, effective from the next start. Raises StorageError."""
        self._write("postgresql.conf", lines(settings), mode="a")

    def _write(self, name: str, text: str, *, mode: str = "w") -> None:
        path = self.data / name
        with workdir.writing(path), self._account.file_access(), path.open(mode) as file:
            file.write(text)

    @property
    def pid(self) -> int:
        """Return the postmaster's process ID. Raises ServerError if it was never started."""
        if self._process is None:
            raise ServerError(f"server {self.name} is not started")
        return self._process.pid

    @property
    def connect_kwargs(self) -> dict[str, str | int]:
        """Return the arguments of psycopg.connect."""
        return {"host": str(self.socket_dir), "port": self.port, "user": "postgres", "dbname": "postgres"}

    def start(self) -> None:
        """Start the server and wait until it accepts connections. Raises ServerError."""
        if not (self.data / "PG_VERSION").exists():
            raise ServerError(
                f"the data directory of server {self.name}, {self.data}, is gone; start the command again"
            )
        kill_all_in(self.data)  # backends may outlive a killed postmaster, and would prevent the start of a new one
        offset = self.log_size()
        self._shortening.enter_context(repeated_after(_LOG_PAUSE, lambda: shorten_log(self.log)))
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*fixed_addresses(), self.build.bindir / "postgres", "-D", self.data],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.data,
                env=self.environment(),
                **(self._account.options() | {"start_new_session": True}),
            )
        self._await_ready(offset)

    def _await_ready(self, offset: int) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not self._ready():
            if self._process is None or self._process.poll() is not None:
                raise ServerError(f"server {self.name} did not start: {_why_failed(self.log_since(offset))}")
            if self.log_size() - offset > _LOG_KEPT:
                self.kill9()
                last = _why_failed(self.log_since(self.log_size() - SHOWN))
                raise ServerError(
                    f"server {self.name} did not start, but fills its log; the patch logs too much: {last}"
                )
            if time.monotonic() > deadline:
                self.kill9()
                why = _why_failed(self.log_since(offset))
                raise ServerError(
                    f"server {self.name} did not start within {_START_SECONDS} s: {why}; a patch makes it hang, "
                    "or the machine has too much other work"
                )
            time.sleep(0.02)

    def _ready(self) -> bool:
        """Return whether the last line of postmaster.pid has the state `ready`."""
        try:
            with self._account.file_access():
                state = (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(state) > 7 and state[0] == str(self.pid) and state[7].strip() == "ready"

    def environment(self) -> dict[str, str]:
        """Return the environment for this build's programs, with the caller's PATH and nothing else of the caller."""
        plain = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
        plain |= {"PGHOST": str(self.socket_dir), "PGUSER": "postgres"}  # defaults of foreign servers
        plain |= self.build.flavor.environment
        return plain | ({PROFILE_FILE: str(self.coverage / PROFILES)} if PROFILE_FILE in plain else {})

    def run(
        self,
        program: Path,
        *arguments: str,
        stdin: str = "",
        variables: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run one of the build's programs as the server's user, whatever its exit code.

        `variables` override the environment. The working directory is the server's by default.
        """
        return subprocess.run(
            [program, *arguments],
            cwd=directory or self._home,
            env=self.environment() | dict(variables or {}),
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            **self._account.options(),
        )

    def stop(self, mode: str = "fast") -> None:
        """Stop the server in any case: in the given mode, then at once, then by killing all of its processes."""
        if self._process is not None:
            self._count_cpu()
            for sign in (_STOPS[mode], signal.SIGQUIT):
                if self._process.poll() is None:
                    self._process.send_signal(sign)
                    self._wait(_STOP_SECONDS)
        self._sweep()

    def _wait(self, seconds: float) -> None:
        try:
            if self._process is not None:
                self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return  # the caller tries a stronger mode

    def _sweep(self) -> None:
        kill_all_in(self.data)
        self._wait(_STOP_SECONDS)
        self._shortening.close()
        self._process = None

    def kill9(self) -> None:
        """Kill postmaster and backends with SIGKILL, as an out-of-memory killer would."""
        self._count_cpu()
        self._sweep()

    def restart(self, mode: str = "fast") -> None:
        """Stop the server and start it again. Raises ServerError."""
        self.stop(mode)
        self.start()

    def alive(self) -> bool:
        """Return whether the postmaster runs, in forked processes too."""
        return self._process is not None and runs_in(self._process.pid, self.data)

    def destroy(self) -> None:
        """Stop the server at once and delete everything."""
        self.stop("immediate")
        remove_segment_of(self.data)
        owners.release(self._owner)
        if not self.socket_dir.is_relative_to(self._home) and self.socket_dir.name.startswith("pgduel-"):
            shutil.rmtree(self.socket_dir, ignore_errors=True)
        shutil.rmtree(self._home, ignore_errors=True)

    def _count_cpu(self) -> None:
        self._spent += cpu_seconds_in(self.data)

    def cpu_seconds(self) -> float:
        """Return the user and system time of all processes of this server so far, including earlier starts."""
        return self._spent + (cpu_seconds_in(self.data) if self._process is not None else 0.0)

    def log_size(self) -> int:
        """Return the log's size in bytes: an offset for `log_since`."""
        return self.log.stat().st_size if self.log.exists() else 0

    def log_since(self, offset: int) -> str:
        """Return the server's log, with stderr of its processes, from an offset in bytes."""
        return log_text(self.log, offset)


def log_text(log: Path, offset: int) -> str:
    """Return the text of a log from an offset in bytes. Of very much text, only start and end are read."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(offset)
        text = file.read(_LOG_BYTES)
        if end - file.tell() > _LOG_BYTES:
            file.seek(end - _LOG_BYTES)
            text += b"\n"
        return (text + file.read(_LOG_BYTES)).replace(b"\0", b"").decode(errors="replace")


def shorten_log(log: Path) -> None:
    """Free the disk space of a log's start if it is long. Offsets stay valid, and the freed part reads as empty.

    A server that logs each row would fill the disk within minutes. File systems without holes keep the log.
    """
    with suppress(FileNotFoundError), log.open("r+b") as file:  # the cluster may be deleted meanwhile
        state = os.fstat(file.fileno())
        if state.st_blocks * _BLOCK > 2 * _LOG_KEPT:
            _LIBC.fallocate64(file.fileno(), _PUNCH_HOLE, c_int64(0), c_int64(state.st_size - _LOG_KEPT))


def await_connections(cluster: Cluster) -> None:
    """Wait until the server accepts connections; restart it if necessary. Raises ServerError."""
    if not cluster.alive() or not answers(cluster):
        cluster.restart()


def answers(cluster: Cluster) -> bool:
    """Return whether the server accepts a connection within some seconds."""
    deadline = time.monotonic() + _RECOVERY_SECONDS
    while time.monotonic() < deadline:
        with suppress(psycopg.OperationalError):
            kwargs: dict[str, Any] = cluster.connect_kwargs
            psycopg.connect(**kwargs, connect_timeout=int(_RECOVERY_SECONDS)).close()
            return True
        time.sleep(_RECOVERY_PAUSE)
    return False
