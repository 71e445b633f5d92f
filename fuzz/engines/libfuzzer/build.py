"""Native harnesses: C files of an arm's tree, linked with a libFuzzer harness of ours and without a server."""

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from filelock import FileLock

from fuzz import workdir
from fuzz.errors import BuildError, SourceError
from fuzz.servers import git
from fuzz.servers.build import Build

_HERE = Path(__file__).parent
CLANG = "clang-19"
_FLAGS = (
    *("-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-fno-omit-frame-pointer", "-fno-strict-aliasing", "-fwrapv"),
    *("-fno-pie", "-no-pie"),  # hashes of pointers must be the same in each run
    *("-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"),
    *("-fprofile-instr-generate", "-fcoverage-mapping"),
    *("-Wall", "-Wno-ignored-attributes", "-Werror"),  # the headers were configured for gcc
)


@dataclass(frozen=True, slots=True)
class _Recipe:
    own: tuple[str, ...]  # files beside this one
    tested: tuple[str, ...]  # files of the tree, compiled as they are; headers among them have code of their own


HARNESSES = {
    "blockbloom": _Recipe(
        ("blockbloom_harness.c", "failure.c"),
        ("src/backend/lib/blockbloom.c", "src/include/lib/blockbloom.h", "src/port/qsort.c"),
    ),
    "resowner": _Recipe(
        ("resowner_harness.c", "resowner_model.c", "resowner_release.c", "backend_stubs.c", "failure.c"),
        ("src/backend/utils/resowner/resowner.c", "src/port/qsort.c"),
    ),
}
_HEADERS = "src/include/"


def build_harness(build: Build, name: str, tree: str = "") -> Path:
    """Return the harness `name` for the C files of a stored tree, by default the build's own; compiled on first use.

    The build gives all other headers, configured, so `tree` may be another one that differs in these files only.
    Raises BuildError, SourceError.
    """
    recipe = HARNESSES[name]
    tested = {path: _source(tree or build.tree, path) for path in recipe.tested}
    home = workdir.harnesses() / f"{name}-{_key(build, tested)}"
    harness = home / name
    with FileLock(f"{home}.lock"):
        if not harness.exists():
            shutil.rmtree(home, ignore_errors=True)
            for path, text in tested.items():
                (home / path).parent.mkdir(parents=True, exist_ok=True)
                (home / path).write_text(text)
            sources = [*(_HERE / file for file in recipe.own), *(home / path for path in tested if path.endswith(".c"))]
            _compile(build, harness, sources)
    return harness


def _source(tree: str, path: str) -> str:
    text = git.show(tree, path)
    if text is None:
        raise SourceError(f"tree {tree[:12]} has no {path}, which its libFuzzer harness is for")
    return text


def _key(build: Build, tested: dict[str, str]) -> str:
    digest = hashlib.sha256("\0".join((build.key, _compiler_version(), *_FLAGS)).encode())
    for file in sorted(_HERE.glob("*.[ch]")):
        digest.update(b"\0" + file.name.encode() + b"\0" + file.read_bytes())
    for path, text in tested.items():
        digest.update(f"\0{path}\0{text}".encode())
    return digest.hexdigest()[:12]


@cache
def _compiler_version() -> str:
    if not shutil.which(CLANG):
        raise BuildError(f"libFuzzer harnesses need {CLANG}: run ./pgduel doctor to see what to install")
    return subprocess.run([CLANG, "--version"], capture_output=True, text=True, check=True).stdout


def _compile(build: Build, harness: Path, sources: list[Path]) -> None:
    draft = harness.with_suffix(".new")
    includes = [f"-I{place}" for place in (harness.parent / _HEADERS, _headers(build), _HERE)]
    command = [CLANG, *_FLAGS, *includes, "-o", str(draft), *map(str, sources), "-lm", "-pthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        first = next(
            (line for line in done.stderr.splitlines() if "error" in line or "undefined" in line), f"{CLANG} failed"
        )
        raise BuildError(f"the libFuzzer harness {harness.name} does not compile: {first.strip()}")
    draft.replace(harness)


def _headers(build: Build) -> str:
    pg_config = [str(build.bindir / "pg_config"), "--includedir-server"]
    environment = os.environ | build.flavor.environment
    return subprocess.run(pg_config, capture_output=True, text=True, check=True, env=environment).stdout.strip()
