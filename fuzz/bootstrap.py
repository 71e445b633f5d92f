"""Set-up: from python3 and nothing else to a running `pgduel` command. Standard library only."""

import fcntl
import hashlib
import os
import shutil
import sys
import tomllib
from pathlib import Path

from fuzz import packages, workdir
from fuzz.errors import PgduelError

_HELP = """\
usage: ./pgduel COMMAND [ARGUMENTS]

  fuzz      duel the patched server against master, after setting up all that is needed
  test      run pgduel's own tests
  doctor    say what is there, what is missing, and what to do
  build, shell, replay, bench, list

The full help of each command needs Python packages that cannot be installed yet:
"""
_COMPLETE = "complete"


def main(arguments: list[str]) -> int:
    """Set up what the command needs, then become it. Returns an exit code only where it does not come to that."""
    try:
        if not _only_looks(arguments):
            absent = packages.missing_packages(for_tests=arguments[0] == "test")
            if absent:
                packages.install(absent)
        elif not is_complete(environment_directory()) and (answered := _look(arguments)) is not None:
            return answered
        python = ensure_environment()
    except PgduelError as error:
        print(f"pgduel: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    path = os.pathsep.join(filter(None, (str(workdir.CHECKOUT), os.environ.get("PYTHONPATH"))))
    # -P: a directory called fuzz where the user stands must not be taken for ours.
    os.execve(python, [str(python), "-P", "-m", "fuzz", *arguments], os.environ | {"PYTHONPATH": path})


def _asks_for_help(arguments: list[str]) -> bool:
    return not arguments or bool({"-h", "--help"} & set(arguments))


def _only_looks(arguments: list[str]) -> bool:
    """Tell whether the command is one that must not install system packages."""
    return _asks_for_help(arguments) or arguments[0] == "doctor"


def _look(arguments: list[str]) -> int | None:
    """Answer, as well as it goes, without Python packages; return an exit code, or None if they can be installed."""
    if arguments == ["doctor"]:
        from fuzz.servers import doctor  # it needs this module

        return doctor.main()
    absent = [p for p in packages.missing_packages(for_tests=False) if p.name == "python3-venv"]
    if not absent:
        return None
    print(f"{_HELP}  {packages.install_line(absent)}")  # noqa: T201
    return 0 if _asks_for_help(arguments) else 2


def dependencies() -> list[str]:
    """Return the Python packages that pyproject.toml asks for."""
    with (workdir.CHECKOUT / "pyproject.toml").open("rb") as file:
        return list(tomllib.load(file)["project"]["dependencies"])


def environment_directory() -> Path:
    """Return where the virtual environment for these dependencies and this Python is, or will be."""
    key = hashlib.sha256("\0".join((sys.version, sys.prefix, *dependencies())).encode()).hexdigest()[:12]
    return workdir.environments() / key


def is_complete(environment: Path) -> bool:
    """Tell whether set-up of an environment ran to its end."""
    return (environment / _COMPLETE).exists()


def ensure_environment() -> Path:
    """Return the Python of the virtual environment, which is made on first use. Raises PgduelError."""
    environment = environment_directory()
    python = environment / "bin" / "python"
    if is_complete(environment):
        return python
    with open(f"{environment}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_complete(environment):
            _make(environment, python)
    return python


def _make(environment: Path, python: Path) -> None:
    """Make an environment in its place, since it cannot be moved; a note written last tells that it is whole."""
    if shutil.disk_usage(environment.parent).free < 1 << 30:
        raise PgduelError(f"no disk space for Python packages in {environment.parent}; make room or set PGDUEL_HOME")
    shutil.rmtree(environment, ignore_errors=True)
    log = workdir.logs() / "environment.log"
    print("pgduel: installing Python packages into its cache", file=sys.stderr)  # noqa: T201
    if packages.run_logged([sys.executable, "-m", "venv", str(environment)], log):
        raise PgduelError(f"cannot make a virtual environment: {packages.last_line(log)} (all of it: {log})")
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    if packages.run_logged([*pip, *dependencies()], log):
        raise PgduelError(f"cannot install Python packages: {packages.last_line(log)} (all of it: {log})")
    (environment / _COMPLETE).touch()
