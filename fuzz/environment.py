"""The virtual environment that the launcher runs the command in, created on first use. Standard library only."""

import hashlib
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

from fuzz import packages, workdir
from fuzz.errors import PgduelError
from fuzz.output import note

LOCK = workdir.PROJECT / "requirements.lock"
_COMPLETE = "complete"
_LOCKED_PIP = re.compile(r"^pip==.*\n(?: +--hash=.*\n)*", re.MULTILINE)


def _project() -> dict[str, Any]:
    with (workdir.PROJECT / "pyproject.toml").open("rb") as file:
        project: dict[str, Any] = tomllib.load(file)["project"]
    return project


def dependencies() -> list[str]:
    """Return the Python packages that pyproject.toml lists for pgduel and its launcher."""
    project = _project()
    return [*project["dependencies"], *project["optional-dependencies"]["launcher"]]


def environment_directory() -> Path:
    """Return the directory of the environment for these dependencies, whether it exists or not.

    The result is the same inside that environment.
    """
    parts = (sys.version, sys.base_prefix, LOCK.read_text(), *dependencies())
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
    return workdir.environments() / key


def is_complete(environment: Path, extra: str = "") -> bool:
    """Return whether set-up of an environment, or of an extra in it, ran to its end."""
    return _mark(environment, extra).exists()


def _mark(environment: Path, extra: str = "") -> Path:
    return environment / (f"{_COMPLETE}-{extra}" if extra else _COMPLETE)


def ensure_environment() -> Path:
    """Return the Python of the virtual environment, which is created on first use. Raises PgduelError."""
    environment = environment_directory()
    python = environment / "bin" / "python"
    if is_complete(environment):
        return python
    with workdir.locked(environment):
        if not is_complete(environment):
            _make(environment, python)
    return python


def ensure_extra(name: str) -> None:
    """Install an extra of pyproject.toml into the environment on first use. Raises PgduelError.

    Extras are large, and few commands need them.
    """
    python = ensure_environment()
    environment = environment_directory()
    if is_complete(environment, name):
        return
    with workdir.locked(environment):
        if not is_complete(environment, name):
            note(f"installing Python packages of {name} into the cache")
            log = workdir.logs() / f"environment-{name}.log"
            _pip_install(python, ["--constraint", str(LOCK), *_project()["optional-dependencies"][name]], log)
            _mark(environment, name).touch()


def _make(environment: Path, python: Path) -> None:
    """Create an environment in its place, because it cannot be moved. A file written last marks it as complete."""
    if shutil.disk_usage(environment.parent).free < 1 << 30:
        raise PgduelError(f"no disk space for Python packages in {environment.parent}; make room or set PGDUEL_HOME")
    shutil.rmtree(environment, ignore_errors=True)
    log = workdir.logs() / "environment.log"
    note("installing Python packages into the cache")
    if packages.run_logged([sys.executable, "-m", "venv", str(environment)], log):
        raise PgduelError(f"cannot create a virtual environment: {packages.last_line(log)}; see {log}")
    _install_locked(environment, python, log)
    _mark(environment).touch()


def _install_locked(environment: Path, python: Path, log: Path) -> None:
    """Install the direct and indirect dependencies, only from archives with locked hashes.

    The lock also lists packages that only tests need, so it serves as constraints. pip before 26.1, such as Debian's,
    refuses constraints with hashes. So the locked pip is installed first.
    """
    locked_pip = environment / "pip.txt"
    found = _LOCKED_PIP.search(LOCK.read_text())
    locked_pip.write_text(found.group() if found else "")
    _pip_install(python, ["--requirement", str(locked_pip)], log)
    _pip_install(python, ["--constraint", str(LOCK), *dependencies()], log)


def _pip_install(python: Path, wanted: list[str], log: Path) -> None:
    options = ("--disable-pip-version-check", "--no-input", "--no-compile", "--require-hashes")
    if packages.run_logged([str(python), "-m", "pip", "install", *options, *wanted], log):
        raise PgduelError(f"cannot install Python packages: {packages.last_line(log)}; see {log}")
