"""Data directories: initdb runs once per build, and each cluster starts from a copy."""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from filelock import FileLock

from fuzz.errors import SHOWN, DiskFull, ServerError, first_line, last_line
from fuzz.servers.account import Account, captured, server_account
from fuzz.servers.build import Build
from fuzz.servers.known_good import major_of
from fuzz.servers.limits import programs_limited
from fuzz.servers.settings import INITDB, INITDB_SINCE, RELAY_ROLES

_SAID = re.compile(r"\b(?:FATAL|DETAIL|HINT):  (.*)")
_REASON = re.compile(r"^TRAP|FATAL|PANIC|error|child process", re.IGNORECASE)  # reasons for a failure of initdb
_LITTLE = 1 << 20  # bytes
_SECONDS = 300.0  # limit of each program, which takes a second

# Roles that HBA names, created before any server listens, in single-user mode. By default it continues after errors.
_ROLES = f"CREATE ROLE {RELAY_ROLES} NOLOGIN\n"
_SINGLE = ("--single", "-F", "-c", "exit_on_error=on")


def copy_data(source: Path, account: Account, data: Path) -> None:
    """Create a data directory that belongs to the account, a copy of another one. Raises ServerError, DiskFull."""
    account.make_private(data)
    copy = ["cp", "--archive", "--reflink=auto", f"{source}/.", str(data)]
    done = subprocess.run(copy, capture_output=True, text=True, **account.options())
    if done.returncode:
        failure = f"cannot copy a data directory to {data}: {first_line(done.stderr)}"
        raise DiskFull(f"{failure}; make room there") if _is_full(data) else ServerError(failure)


def _is_full(directory: Path) -> bool:
    """Return whether a disk is full. The messages of `cp` depend on the user's language."""
    return shutil.disk_usage(directory).free < _LITTLE


def refusal(build: Build, name: str, value: str) -> str:
    """Return the server's words about a setting that its configuration may not have; "" if it may."""
    account = server_account()
    command = ("postgres", "-D", "data", "-C", name, "-c", f"{name}={value}")  # prints the value, and starts nothing
    done = _execute(build, template(build, account).parent, command)
    said = "; ".join(line.rstrip(".") for line in _SAID.findall(done.stderr))
    return (said or last_line(done.stderr)) if done.returncode else ""


def template(build: Build, account: Account) -> Path:
    """Return the data directory to copy, created on first use. Its name contains all that it depends on."""
    options = _options(build)
    made_of = hashlib.sha256("\0".join((*options, _ROLES)).encode()).hexdigest()
    home = build.prefix.parent / f"template-{account.uid}-{made_of[:8]}"
    with FileLock(f"{home}.lock"):
        if not (home / "data").exists():
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir()
            account.require_entry(home)
            account.make_private(home / "draft")
            _run(build, home, ("initdb", "--pgdata=draft", *options))
            _run(build, home, ("postgres", *_SINGLE, "-D", "draft", "postgres"), _ROLES)
            (home / "draft").rename(home / "data")
    return home / "data"


def _options(build: Build) -> tuple[str, ...]:
    """Return initdb's options that make all versions alike."""
    added = (options for version, options in INITDB_SINCE.items() if major_of(build.version) >= version)
    return (*INITDB, *chain.from_iterable(added))


def _run(build: Build, home: Path, command: Sequence[str], sql: str = "") -> None:
    """Run one of the build's programs in the template's directory. Raises ServerError."""
    done = _execute(build, home, command, sql)
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()
        reason = next(filter(_REASON.search, lines), lines[-1])
        raise ServerError(f"{command[0]} of build {build.key} failed, so its servers cannot start: {reason[:SHOWN]}")


def _execute(build: Build, home: Path, command: Sequence[str], sql: str = "") -> subprocess.CompletedProcess[str]:
    """Run one of the build's programs in a directory with the data directory `draft` or `data`.

    Raises ServerError if it does not end.
    """
    program, *arguments = command
    with programs_limited((home, home / "draft", home / "data"), _SECONDS) as over:
        done = captured(
            [build.bindir / program, *arguments],
            input=sql.encode(),
            cwd=home,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"} | build.flavor.environment,
        )
    if over.is_set():
        raise ServerError(
            f"{program} of build {build.key} did not end within {_SECONDS:g} s, so its servers cannot start; "
            "the patch makes it hang"
        )
    return done
