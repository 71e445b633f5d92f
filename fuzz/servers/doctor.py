"""Doctor: requirements that are met and missing, with remedies. Standard library only, as it must run before set-up."""

import json
import os
import pwd
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from fuzz import environment, packages, workdir
from fuzz.output import tell

_DISK = 6 << 30  # two arms in two flavors, the compiler cache and a campaign


class State(StrEnum):
    """States of a requirement."""

    OK = "ok"
    NOTE = "note"  # met, or met after set-up
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Check:
    """A requirement, its state and its remedy."""

    name: str
    state: State
    found: str
    remedy: str = ""
    details: tuple[str, ...] = ()


def _packages() -> Check:
    absent = packages.missing_packages(with_clang=workdir.IS_CHECKOUT)
    needed = [package for package in absent if not package.clang]
    if not absent:
        return Check("packages", State.OK, f"all {len(packages.PACKAGES)} installed")
    purpose = "" if needed else ", which only tests, coverage and --engine libfuzzer need"
    line = f"as root, run: {packages.install_line(absent)}"
    return Check(
        "packages",
        State.MISSING if needed else State.NOTE,
        f"{len(absent)} of {len(packages.PACKAGES)} missing{purpose}",
        f"./pgduel installs them if it can become root; otherwise, {line}" if workdir.IS_CHECKOUT else line,
        tuple(f"{package.name}: {package.reason}" for package in absent),
    )


def _compiler() -> Check:
    if not shutil.which("gcc"):
        return Check("compiler", State.MISSING, "no gcc", "install the packages above")
    version = subprocess.run(["gcc", "--version"], capture_output=True, text=True).stdout.partition("\n")[0]
    return Check("compiler", State.OK, version)


def _python() -> Check:
    version = sys.version.split()[0]
    if not workdir.IS_CHECKOUT:
        return Check("python", State.OK, f"{version}, packages in {sys.prefix}")
    directory = environment.environment_directory()
    if environment.is_complete(directory):
        return Check("python", State.OK, f"{version}, packages in {directory}")
    return Check("python", State.NOTE, f"{version}, packages not installed yet", "any other command installs them")


def _cache() -> Check:
    root = workdir.root()
    if not os.access(root, os.W_OK):
        return Check("cache", State.MISSING, f"{root} is not writable", "set PGDUEL_HOME to a writable directory")
    free = shutil.disk_usage(root).free
    found = f"{root}, {free >> 30} GB free"
    if free < _DISK:
        return Check("cache", State.MISSING, found, f"make room for {_DISK >> 30} GB, or set PGDUEL_HOME elsewhere")
    return Check("cache", State.OK, found)


def _server_data() -> Check:
    memory = workdir.MEMORY
    if not memory.is_dir():
        return Check("server data", State.MISSING, f"no {memory}", "mount a tmpfs there")
    place = workdir.clusters()
    found = f"{place}, {shutil.disk_usage(place).free >> 30} GB free"
    if place == workdir.clusters_on_disk():
        remedy = f"for faster cases, give {memory} 8 GB (in a container: --shm-size 8g), and do not set PGDUEL_HOME"
        return Check("server data", State.NOTE, found, remedy)
    return Check("server data", State.OK, found)


def _server_user() -> Check:
    if os.geteuid() != 0:
        return Check("server user", State.OK, f"{pwd.getpwuid(os.geteuid()).pw_name} (you)")
    name = os.environ.get("PGDUEL_USER", "pgduel")
    try:
        pwd.getpwnam(name)
    except KeyError:
        if "PGDUEL_USER" in os.environ:
            return Check("server user", State.MISSING, f"no user {name}", "set PGDUEL_USER to an ordinary user")
        return Check("server user", State.NOTE, f"{name}, does not exist yet", "the first start of a server creates it")
    return Check("server user", State.OK, name)


def _builds() -> Check:
    notes = [json.loads(note.read_text()) for note in sorted(workdir.builds().glob("*/build.json"))]
    if not notes:
        return Check("builds", State.NOTE, "none yet", f"{workdir.COMMAND} fuzz compiles its builds in some minutes")
    flavors = Counter(f"{note['version']} {note['flavor']}" for note in notes)
    details = tuple(f"{number} of {flavor}" for flavor, number in sorted(flavors.items()))
    return Check("builds", State.OK, str(len(notes)), details=details)


CHECKS: tuple[Callable[[], Check], ...] = (
    _packages,
    _compiler,
    _python,
    _cache,
    _server_data,
    _server_user,
    _builds,
)


def examine() -> tuple[Check, ...]:
    """Return all checks. They change nothing except that they create the cache's directory. Raises PgduelError if they
    cannot.
    """
    return tuple(check() for check in CHECKS)


def describe(check: Check) -> tuple[str, ...]:
    """Return a check as lines of text."""
    remedy = (f"{'':10}-> {check.remedy}",) if check.remedy else ()
    return (f"{check.state:8}{check.name}: {check.found}", *(f"{'':10}{line}" for line in check.details), *remedy)


def exit_code(checks: Iterable[Check]) -> int:
    """Return 0 if nothing is missing, else 2."""
    return 2 if any(check.state is State.MISSING for check in checks) else 0


def main() -> int:
    """Print the checks on machines where the command line cannot run yet; return the exit code."""
    checks = examine()
    for check in checks:
        for line in describe(check):
            tell(line)
    return exit_code(checks)
