"""The account under which servers run: PostgreSQL refuses root."""

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from fuzz import workdir
from fuzz.errors import ServerError

_DEFAULT = "pgduel"
_VARIABLE = "PGDUEL_USER"


@dataclass(frozen=True, slots=True)
class Account:
    """Who runs servers. Without a name it is the caller."""

    name: str
    uid: int
    gid: int

    def options(self) -> dict[str, Any]:
        """Return what subprocess needs to start a program as this account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.name else {}

    def give(self, path: Path) -> None:
        """Make the account own a path."""
        if self.name:
            os.chown(path, self.uid, self.gid)

    def require_entry(self, path: Path) -> None:
        """Check that the account may enter a directory. Raises ServerError."""
        if self.name and subprocess.run(["test", "-x", str(path)], **self.options()).returncode:
            raise ServerError(
                f"servers run as user {self.name}, who may not enter {path}; set PGDUEL_HOME to a directory open to all"
            )


def server_account() -> Account:
    """Return the caller or, for root, $PGDUEL_USER or the system user pgduel, made on first use.

    Raises ServerError.
    """
    if os.geteuid() != 0:
        return Account("", os.geteuid(), os.getegid())
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
