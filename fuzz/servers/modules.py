"""Server modules of pgduel, in C beside this file, compiled against a build on first use.

They need headers that PostgreSQL does not install: definitions copied from the build's tree.
"""

import hashlib
import os
import re
import shlex
import subprocess
from pathlib import Path

from filelock import FileLock

from fuzz.errors import BuildError, CompileError, first_line
from fuzz.servers import git
from fuzz.servers.account import captured
from fuzz.servers.build import Build
from fuzz.servers.compile import compile_file

SOURCES = Path(__file__).parent / "modules"
FAULT_INJECTOR = "pgduel_faults"  # plants bugs
_FLAGS = "-std=gnu99 -O2 -g -fPIC -fvisibility=hidden -fno-strict-aliasing -fwrapv -Wall -Werror"

_RESOWNER = "src/backend/utils/resowner/resowner.c"
_CONSTANT = re.compile(r"^#define[ \t]+\w*RESOWNER_\w+[ \t]+\d+[ \t]*$", re.MULTILINE)
_ELEMENT = re.compile(r"^typedef struct (Resource\w*Elem)\n\{.*?^\} \1;$", re.MULTILINE | re.DOTALL)
_OWNER = re.compile(r"^struct ResourceOwnerData\n\{.*?^\};$", re.MULTILINE | re.DOTALL)
_NEEDED = ("parent", "narr", "nhash", "capacity")


def modules_directory(build: Build) -> Path:
    """Return the directory of a build's modules, for dynamic_library_path. Each change of a source changes it."""
    digest = hashlib.sha256()
    for source in (*sorted(SOURCES.glob("*.[ch]")), Path(__file__)):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return build.prefix.parent / "modules" / digest.hexdigest()[:12]


def ensure_module(build: Build, name: str) -> Path:
    """Return the shared library of modules/NAME.c for a build, compiled on first use. Raises BuildError."""
    source = SOURCES / f"{name}.c"
    if not source.exists():
        raise BuildError(f"there is no server module {name} in {SOURCES}; install pgduel again")
    library = modules_directory(build) / f"{name}.so"
    if library.exists():
        return library
    library.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{library}.lock"):
        if not library.exists():
            _compile(build, source, library)
    return library


def _compile(build: Build, source: Path, library: Path) -> None:
    """Compile a module with private headers, or without them if that fails, as after a patch that changes them.

    The compiler reads a copy, because the account of servers may lack access to the checkout.
    """
    copied, headers = library.with_suffix(".source"), library.with_suffix(".include")
    for directory in (copied, headers):
        directory.mkdir(exist_ok=True)
    for file in SOURCES.glob("*.[ch]"):
        (copied / file.name).write_bytes(file.read_bytes())
    for name, text in private_headers(build.tree).items():
        (headers / name).write_text(text)
    done = _compiled(build, copied / source.name, library, f"-I{headers}")
    if done.returncode:
        done = _compiled(build, copied / source.name, library)
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line), f"{build.flavor.compiler} failed")
        raise CompileError(f"server module {source.name} does not compile against build {build.key}: {first.strip()}")


def _compiled(build: Build, source: Path, library: Path, *options: str) -> subprocess.CompletedProcess[str]:
    flags = shlex.split(f"{_FLAGS} {build.flavor.compiler_flags}")
    command = [build.flavor.compiler, *flags, f"-I{server_headers(build)[0]}", *options]
    return compile_file([*command, "-D_GNU_SOURCE", "-shared", str(source)], library)


def server_headers(build: Build) -> list[str]:
    """Return the directories of a build's headers: the server's, and libpq's. Raises CompileError."""
    program = build.bindir / "pg_config"
    done = captured([program, "--includedir-server", "--includedir"], env=os.environ | build.flavor.environment)
    directories = done.stdout.splitlines()
    if done.returncode or len(directories) != 2:
        raise CompileError(f"pg_config of build {build.key} does not name its headers: {first_line(done.stderr)}")
    return directories


def private_headers(tree: str) -> dict[str, str]:
    """Return headers by file name. A header is left out if the tree differs too much from PostgreSQL 17."""
    found = {"private_resowner.h": resource_owner_header(git.show(tree, _RESOWNER) or "")}
    return {name: text for name, text in found.items() if text is not None}


def resource_owner_header(source: str) -> str | None:
    """Return the definition of ResourceOwnerData in a resowner.c with its dependencies, or None."""
    elements = [found[0] for found in _ELEMENT.finditer(source)]
    owner = _OWNER.search(source)
    if not elements or not owner or not all(re.search(rf"\b{name}\b", owner[0]) for name in _NEEDED):
        return None
    return "\n".join([*_CONSTANT.findall(source), *elements, owner[0], ""])
