"""System packages that pgduel needs: names in Debian, Fedora and Arch, and their installation by apt.

Standard library only.
"""

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fuzz import workdir
from fuzz.errors import PgduelError
from fuzz.output import note

_INSTALL: Final = {  # by ID of /etc/os-release
    "debian": "apt-get update && apt-get install -y --no-install-recommends",
    "fedora": "dnf install -y",
    "arch": "pacman -S --needed",
}


@dataclass(frozen=True, slots=True)
class Package:
    """A system package: its names, its purpose, and the program or library that shows its presence."""

    name: str  # Debian's and Ubuntu's
    reason: str
    fedora: str = ""  # if it differs from Debian's
    arch: str = ""
    program: str = ""
    library: str = ""  # name in pkg-config
    clang: bool = False  # needed only for harnesses, tests, coverage and the engine libfuzzer
    first: bool = False  # Python packages cannot be installed before it
    optional: bool = False  # the launcher installs it, but pgduel runs without it

    def name_in(self, distribution: str) -> str:
        """Return the package's name in `fedora`, `arch` or `debian`."""
        return {"fedora": self.fedora, "arch": self.arch}.get(distribution) or self.name

    def is_found(self) -> bool:
        """Return whether the package's program or library is present, no matter how it was installed."""
        if self.library:
            return bool(shutil.which("pkg-config")) and not subprocess.run(["pkg-config", self.library]).returncode
        return bool(self.program and shutil.which(self.program))


PACKAGES = (
    Package("python3-venv", "pip, which installs Python packages", "python3", "python", first=True),
    Package("git", "stores source trees and applies patches", program="git"),
    Package("gcc", "compiles PostgreSQL", program="gcc"),
    Package("libc6-dev", "compiles PostgreSQL", "glibc-devel", "glibc", program="gcc"),
    Package("binutils", "links PostgreSQL, and names functions in backtraces", program="ld"),
    Package("meson", "configures PostgreSQL", program="meson"),
    Package("ninja-build", "builds PostgreSQL", arch="ninja", program="ninja"),
    Package(
        "pkg-config", "finds libraries when PostgreSQL is configured", "pkgconf-pkg-config", "pkgconf", "pkg-config"
    ),
    Package("bison", "generates PostgreSQL's parsers", program="bison"),
    Package("flex", "generates PostgreSQL's scanners", program="flex"),
    Package("perl", "generates PostgreSQL's catalogs", program="perl"),
    Package("ccache", "compiles equal files of two arms only once", program="ccache"),
    Package("libicu-dev", "collations of PostgreSQL", "libicu-devel", "icu", library="icu-i18n"),
    Package("libreadline-dev", "line editing in psql", "readline-devel", "readline", library="readline"),
    Package("sqlsmith", "queries of the source sqlsmith", program="sqlsmith", optional=True),
    Package("clang-19", "libFuzzer harnesses, fuzz --engine libfuzzer, coverage", clang=True),
    Package("libclang-rt-19-dev", "libFuzzer and its sanitizers", clang=True),
    Package("llvm-19", "names functions in sanitizer reports and of edges, reads coverage", clang=True),
)


def missing_packages(*, with_clang: bool) -> list[Package]:
    """Return the packages that are not installed.

    Without dpkg, missing programs and libraries show that. Packages without either are assumed to be installed.
    """
    installed = _installed() if shutil.which("dpkg-query") else _found()
    if importlib.util.find_spec("ensurepip") is not None:
        installed.add("python3-venv")  # part of this interpreter
    return [p for p in PACKAGES if p.name not in installed and (with_clang or not p.clang)]


def _installed() -> set[str]:
    done = subprocess.run(
        ["dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Package}\\n", *(p.name for p in PACKAGES)],
        capture_output=True,
        text=True,
    )
    return {name for status, name in map(str.split, done.stdout.splitlines()) if status == "installed"}


def _found() -> set[str]:
    return {p.name for p in PACKAGES if p.clang or p.optional or p.is_found()}


def require_programs() -> None:
    """Check that the programs and libraries for duels are present. Raises PgduelError with the command to run.

    An installed pgduel only checks. In a checkout, the launcher installs missing packages.
    """
    if sys.platform != "linux":
        raise PgduelError("pgduel needs Linux's /proc; on macOS, run it in a virtual machine (brew install lima)")
    missing = missing_packages(with_clang=False)
    if absent := [p for p in missing if not (p.first or p.optional or p.is_found())]:
        raise PgduelError(f"system packages are missing; as root, run: {install_line(absent)}")


def install_line(packages: list[Package]) -> str:
    """Return the command, for root, that installs packages on Fedora, Arch and related systems, or else on Debian."""
    distribution = _distribution()
    names = [package.name_in(distribution) for package in packages]
    return f"{_INSTALL[distribution]} {' '.join(dict.fromkeys(names))}"


def _distribution() -> str:
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        return "debian"
    like = [system["ID"], *system.get("ID_LIKE", "").split()]
    return next((name for name in like if name in _INSTALL), "debian")


def _install_command(packages: list[Package]) -> list[str]:
    return ["apt-get", "install", "-y", "--no-install-recommends", *(package.name for package in packages)]


def require_installable(packages: list[Package]) -> list[str]:
    """Return the prefix of a command that root must run. Raises PgduelError with the command if there is none."""
    become_root = _become_root()
    if become_root is None or not shutil.which("apt-get"):
        line = install_line(packages)
        raise PgduelError(f"system packages are missing, and only root can install them; as root, run: {line}")
    return become_root


def update_lists(packages: list[Package]) -> None:
    """Update the package lists before an installation. Raises PgduelError with the command that root should run."""
    _run_as_root(["apt-get", "update"], packages, workdir.logs() / "packages-update.log")


def install(packages: list[Package]) -> None:
    """Install packages as root or through sudo. Raises PgduelError with the command that root should run."""
    names = " ".join(package.name for package in packages)
    note(f"installing {len(packages)} system packages: {names}")
    _run_as_root(_install_command(packages), packages, workdir.logs() / f"packages-{packages[0].name}.log")


def _run_as_root(command: list[str], packages: list[Package], log: Path) -> None:
    become_root = require_installable(packages)
    if run_logged([*become_root, "env", "DEBIAN_FRONTEND=noninteractive", *command], log):
        line = install_line(packages)
        raise PgduelError(f"cannot install system packages: {last_line(log)}, see {log}; as root, run: {line}")


def _become_root() -> list[str] | None:
    """Return the prefix of a command that needs root, or None if there is none."""
    if os.geteuid() == 0:
        return []
    if not shutil.which("sudo"):
        return None
    if subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0:
        return ["sudo", "-n"]
    return ["sudo"] if os.isatty(0) and os.isatty(2) else None  # sudo may ask for a password


def run_logged(command: list[str], log: Path) -> int:
    """Run a command with its output in a log; return its exit code."""
    with log.open("w") as output:
        return subprocess.run(command, stdout=output, stderr=subprocess.STDOUT).returncode


def last_line(log: Path) -> str:
    """Return the last error in a log, or its last line."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith(("e:", "error"))]
    return (errors or lines or ["no message"])[-1]
