"""The account that compiles patches and runs servers. Root does neither, and PostgreSQL refuses root."""

import ctypes
import os
import pwd
import resource
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, TypedDict

from filelock import FileLock

from fuzz import workdir
from fuzz.errors import ServerError

_DEFAULT = "pgduel"
_VARIABLE = "PGDUEL_USER"
_FILE_BYTES: Final = 64 << 20  # more than initdb writes to a file
_LIBC: Final = ctypes.CDLL(None)


class Identity(TypedDict, total=False):
    """The arguments of subprocess that set a program's user."""

    user: int
    group: int
    extra_groups: list[int]
    start_new_session: bool


@dataclass(frozen=True, slots=True)
class Account:
    """The user of everything that comes from a patch. Without a name it is the caller."""

    name: str
    uid: int
    gid: int

    def options(self) -> Identity:
        """Return the arguments of subprocess that start a program as this account.

        The program gets no controlling terminal, because it could type commands into root's.
        """
        if not self.name:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": [], "start_new_session": True}

    @contextmanager
    def file_access(self) -> Iterator[None]:
        """Check file access of the current thread against the account's permissions instead of root's.

        So a link that a patched server creates leads no further than the server itself may go. Linux has file system
        IDs for this purpose (setfsuid(2)); they also remove root's capabilities for files.
        """
        if not self.name:
            yield
            return
        _LIBC.setfsgid(self.gid)
        _LIBC.setfsuid(self.uid)
        try:
            yield
        finally:
            _LIBC.setfsuid(os.geteuid())
            _LIBC.setfsgid(os.getegid())

    def give(self, path: Path) -> None:
        """Make the account the owner of a path."""
        if self.name:
            os.chown(path, self.uid, self.gid)

    def make_private(self, path: Path) -> Path:
        """Create a directory that only the account and root may enter; return its path."""
        path.mkdir(mode=0o700)
        self.give(path)
        return path

    def lend(self, directory: Path) -> None:
        """Allow the account, and no other user, to read and enter a directory of the caller."""
        if self.name:
            os.chown(directory, -1, self.gid)
        directory.chmod(0o750 if self.name else 0o700)

    def require_entry(self, path: Path) -> None:
        """Check that the account may enter a directory. Raises ServerError."""
        if self.name and subprocess.run(["test", "-x", str(path)], **self.options()).returncode:
            raise ServerError(
                f"servers run as user {self.name}, who may not enter {path}; set PGDUEL_HOME to a directory open to all"
            )

    def system_users(self) -> tuple[str, ...]:
        """Return the names of the users who may connect to servers: the caller and the account."""
        caller = pwd.getpwuid(os.geteuid()).pw_name
        return (caller, self.name) if self.name else (caller,)


def server_account() -> Account:
    """Return the caller or, for root, $PGDUEL_USER or the system user pgduel, which is created on first use.

    Root drops its supplementary groups, because they would count in `Account.file_access`. Raises ServerError.
    """
    if os.geteuid() != 0:
        return Account("", os.geteuid(), os.getegid())
    if os.getgroups():
        os.setgroups([])
    name = os.environ.get(_VARIABLE, _DEFAULT)
    found = _look_up(name)
    if found is None and name == _DEFAULT:
        found = _made(name)
    if found is None or found.pw_uid == 0:
        raise ServerError(f"servers cannot run as user {name!r}; set {_VARIABLE} to an ordinary user")
    return Account(name, found.pw_uid, found.pw_gid)


def within(limits: Mapping[str, int]) -> tuple[str, ...]:
    """Return the command that starts a program within soft limits, whose names are those of prlimit(1).

    Where the caller has a hard limit, that one stays. Soft limits end a program with a signal that names the limit.
    """
    kinds = {name: getattr(resource, f"RLIMIT_{name.upper()}") for name in limits}
    unlimited = [name for name, kind in kinds.items() if resource.getrlimit(kind)[1] == resource.RLIM_INFINITY]
    return ("prlimit", *(f"--{name}={limits[name]}:" for name in unlimited))


def captured(command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program of a patch as the account of servers, and return it with its output, or a line if that is endless.

    The limit of its files ends such a program. `options` are those of subprocess.run.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        limited = (*within({"fsize": _FILE_BYTES}), *command)
        done = subprocess.run(limited, stdout=output, stderr=errors, **options, **server_account().options())
        return subprocess.CompletedProcess(command, done.returncode, _text(output), _text(errors))


def _text(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(0)
    return "its output does not end" if size >= _FILE_BYTES else output.read().decode(errors="replace")


def _look_up(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _made(name: str) -> pwd.struct_passwd | None:
    """Create the user, unless another process has done so in the meantime.

    This runs under a lock: of two concurrent useradds both succeed, and the second changes the UID of the first one's
    user.
    """
    with FileLock(workdir.root() / "account.lock"):
        return _look_up(name) or _add(name)


def _add(name: str) -> pwd.struct_passwd | None:
    command = ["useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    try:
        done = subprocess.run([*command, "--shell", "/usr/sbin/nologin", name], capture_output=True, text=True)
    except FileNotFoundError as error:
        raise ServerError(f"useradd is not installed; set {_VARIABLE} to an existing user for servers") from error
    if done.returncode:
        raise ServerError(f"cannot create the user {name} for servers: {done.stderr.strip()}")
    return _look_up(name)
