"""System packages (Debian's names) that pgduel needs, and how to get them. Standard library only."""

import importlib.util
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fuzz import workdir
from fuzz.errors import PgduelError
from fuzz.output import note


@dataclass(frozen=True, slots=True)
class Package:
    """A Debian package and the reason for it."""

    name: str
    reason: str
    tests_only: bool = False  # only `pgduel test` needs it
    first: bool = False  # Python packages cannot be installed before it


PACKAGES = (
    Package("python3-venv", "pip, for the libraries that pgduel is written with", first=True),
    Package("git", "stores source trees and applies patches"),
    Package("gcc", "compiles PostgreSQL"),
    Package("libc6-dev", "compiles PostgreSQL"),
    Package("binutils", "links PostgreSQL, and names functions in backtraces"),
    Package("meson", "configures PostgreSQL"),
    Package("ninja-build", "builds PostgreSQL"),
    Package("pkg-config", "finds libraries when PostgreSQL is configured"),
    Package("bison", "generates PostgreSQL's parsers"),
    Package("flex", "generates PostgreSQL's scanners"),
    Package("perl", "generates PostgreSQL's catalogs"),
    Package("ccache", "compiles what two arms have in common only once"),
    Package("libicu-dev", "collations of PostgreSQL"),
    Package("libreadline-dev", "line editing in psql"),
    Package("sqlsmith", "queries of the source sqlsmith"),
    Package("clang-19", "libFuzzer harnesses", tests_only=True),
    Package("libclang-rt-19-dev", "libFuzzer and its sanitizers", tests_only=True),
    Package("llvm-19", "names functions in sanitizer reports", tests_only=True),
)


def missing_packages(*, for_tests: bool) -> list[Package]:
    """Return what is not installed. Where there is no dpkg, the machine's owner is trusted."""
    if not shutil.which("dpkg-query"):
        return []
    done = subprocess.run(
        ["dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Package}\\n", *(p.name for p in PACKAGES)],
        capture_output=True,
        text=True,
    )
    installed = {name for status, name in map(str.split, done.stdout.splitlines()) if status == "installed"}
    if importlib.util.find_spec("ensurepip") is not None:
        installed.add("python3-venv")  # this interpreter brings its own
    return [p for p in PACKAGES if p.name not in installed and (for_tests or not p.tests_only)]


def install_line(packages: list[Package]) -> str:
    """Return the one line that root runs to install the packages."""
    return f"apt-get update && {' '.join(_install_command(packages))}"


def _install_command(packages: list[Package]) -> list[str]:
    return ["apt-get", "install", "-y", "--no-install-recommends", *(package.name for package in packages)]


def require_installable(packages: list[Package]) -> list[str]:
    """Return the words before a command of root's. Raises PgduelError that says what root should run."""
    become_root = _become_root()
    if become_root is None or not shutil.which("apt-get"):
        line = install_line(packages)
        raise PgduelError(f"system packages are missing and need root to install; as root, run: {line}")
    return become_root


def update_lists(packages: list[Package]) -> None:
    """Update the lists of packages, before these are installed. Raises PgduelError that says what root should run."""
    _run_as_root(["apt-get", "update"], packages, workdir.logs() / "packages-update.log")


def install(packages: list[Package]) -> None:
    """Install the packages, as root or through sudo. Raises PgduelError that says what root should run."""
    names = " ".join(package.name for package in packages)
    note(f"installing {len(packages)} system packages: {names}")
    _run_as_root(_install_command(packages), packages, workdir.logs() / f"packages-{packages[0].name}.log")


def _run_as_root(command: list[str], packages: list[Package], log: Path) -> None:
    become_root = require_installable(packages)
    if run_logged([*become_root, "env", "DEBIAN_FRONTEND=noninteractive", *command], log):
        line = install_line(packages)
        raise PgduelError(f"cannot install system packages: {last_line(log)} (all of it: {log}); as root, run: {line}")


def _become_root() -> list[str] | None:
    """Return what to put before a command that needs root, or None where there is no way."""
    if os.geteuid() == 0:
        return []
    if not shutil.which("sudo"):
        return None
    if subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0:
        return ["sudo", "-n"]
    return ["sudo"] if os.isatty(0) and os.isatty(2) else None  # it may ask for a password


def run_logged(command: list[str], log: Path) -> int:
    """Run a command with its output in a log; return its exit code."""
    with log.open("w") as output:
        return subprocess.run(command, stdout=output, stderr=subprocess.STDOUT).returncode


def last_line(log: Path) -> str:
    """Return the last complaint in a log, or its last line."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    complaints = [line for line in lines if line.lower().startswith(("e:", "error"))]
    return (complaints or lines or ["no message"])[-1]
