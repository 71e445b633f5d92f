"""Data directories: initdb runs once for a build, and each cluster starts from a copy."""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from filelock import FileLock

from fuzz.errors import ServerError, first_line
from fuzz.servers.account import Account
from fuzz.servers.base import major_of
from fuzz.servers.build import Build
from fuzz.servers.settings import INITDB, INITDB_SINCE

_TELLING = re.compile(r"^TRAP|FATAL|PANIC|error|terminated by signal", re.IGNORECASE)  # why initdb failed


def copy_template(build: Build, account: Account, data: Path) -> None:
    """Make a data directory that belongs to the account. Raises ServerError."""
    template = _template(build, account)
    done = subprocess.run(
        ["cp", "--archive", "--reflink=auto", str(template), str(data)], capture_output=True, text=True
    )
    if done.returncode:
        raise ServerError(f"cannot copy a data directory to {data}: {first_line(done.stderr)}")


def _template(build: Build, account: Account) -> Path:
    """Return the data directory to copy, made on first use; its name holds all that it depends on."""
    options = _options(build)
    home = build.prefix.parent / f"template-{account.uid}-{hashlib.sha256(' '.join(options).encode()).hexdigest()[:8]}"
    with FileLock(f"{home}.lock"):
        if not (home / "data").exists():
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir()
            account.give(home)
            account.require_entry(home)
            _initdb(build, account, options, home / "draft")
            (home / "draft").rename(home / "data")
    return home / "data"


def _options(build: Build) -> tuple[str, ...]:
    """Return what initdb is to do alike in all versions."""
    added = (options for version, options in INITDB_SINCE.items() if major_of(build.version) >= version)
    return (*INITDB, *chain.from_iterable(added))


def _initdb(build: Build, account: Account, options: Sequence[str], directory: Path) -> None:
    done = subprocess.run(
        [build.bindir / "initdb", "--pgdata", directory, *options],
        capture_output=True,
        text=True,
        cwd=directory.parent,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"} | build.flavor.environment,
        **account.options(),
    )
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()
        said = next(filter(_TELLING.search, lines), lines[-1])
        raise ServerError(f"initdb of build {build.key} failed, so no server of it can be had: {said}")
