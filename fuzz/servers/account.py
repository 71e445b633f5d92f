"""The account that compiles patches and runs servers. Root never does either; PostgreSQL refuses root anyway."""

import ctypes
import os
import pwd
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypedDict

from filelock import FileLock

from fuzz import workdir
from fuzz.errors import ServerError

_DEFAULT = "pgduel"
_VARIABLE = "PGDUEL_USER"
_LIBC: Final = ctypes.CDLL(None)


class Identity(TypedDict, total=False):
    """The part of subprocess's arguments that says as whom a program runs."""

    user: int
    group: int
    extra_groups: list[int]
    start_new_session: bool


@dataclass(frozen=True, slots=True)
class Account:
    """The user that runs whatever comes from a patch. Without a name it is the caller."""

    name: str
    uid: int
    gid: int

    def options(self) -> Identity:
        """Return what subprocess needs to start a program as this account.

        The program gets no controlling terminal: it could type commands into root's.
        """
        if not self.name:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": [], "start_new_session": True}

    @contextmanager
    def file_access(self) -> Iterator[None]:
        """Check file access of the current thread against the account's rights, not root's.

        A link that a patched server put into its directory then leads no further than the server itself may go.
        Linux has file system IDs for this purpose (setfsuid(2)); they also take root's capabilities for files away.
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
        """Make the account own a path."""
        if self.name:
            os.chown(path, self.uid, self.gid)

    def make_private(self, path: Path) -> Path:
        """Make a directory that only the account, and root, may enter. Returns the path."""
        path.mkdir(mode=0o700)
        self.give(path)
        return path

    def lend(self, directory: Path) -> None:
        """Let the account read and enter a directory of the caller's, and nobody else."""
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
    """Return the caller or, for root, $PGDUEL_USER or the system user pgduel, made on first use.

    Root gives up its supplementary groups, which would count in `Account.file_access`. Raises ServerError.
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
        raise ServerError(f"servers cannot run as user {name!r}; let {_VARIABLE} name an ordinary user")
    return Account(name, found.pw_uid, found.pw_gid)


def _look_up(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _made(name: str) -> pwd.struct_passwd | None:
    """Make the user unless somebody else has by now.

    One at a time: of two useradds at once, both go on, and the second gives the user of the first another UID.
    """
    with FileLock(workdir.root() / "account.lock"):
        return _look_up(name) or _add(name)


def _add(name: str) -> pwd.struct_passwd | None:
    command = ["useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    try:
        done = subprocess.run([*command, "--shell", "/usr/sbin/nologin", name], capture_output=True, text=True)
    except FileNotFoundError as error:
        raise ServerError(f"no useradd here; let {_VARIABLE} name the user to run servers as") from error
    if done.returncode:
        raise ServerError(f"cannot make the user {name} for servers: {done.stderr.strip()}")
    return _look_up(name)
