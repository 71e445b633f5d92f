"""Builds of native harnesses: C files of an arm's tree, linked with a libFuzzer harness, without a server."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from filelock import FileLock

from fuzz import workdir
from fuzz.errors import BuildError, SourceError
from fuzz.servers import git
from fuzz.servers.build import Build
from fuzz.servers.compile import compile_file
from fuzz.servers.modules import server_headers

_HERE = Path(__file__).parent
CLANG = "clang-19"
_FLAGS = (
    *("-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-fno-omit-frame-pointer", "-fno-strict-aliasing", "-fwrapv"),
    "-fno-pie",  # hashes of pointers must be equal in each run
    *("-ffunction-sections", "-fdata-sections"),  # so that the linker can drop unused functions
    *("-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"),
    "-fno-sanitize=function",  # tree walkers are called through pointers of another type
    *("-fprofile-instr-generate", "-fcoverage-mapping"),
    *("-Wall", "-Wno-ignored-attributes", "-Werror"),  # the headers were configured for gcc
    "-Wno-unused-function",  # an injected bug may remove the only call
    "-ffile-compilation-dir=.",  # so that file names are valid for each harness that links the object
)
_LINKING = ("-no-pie", "-lm", "-pthread")
# The server's files refer to many functions that are never called. Symbols that remain after unused functions are
# dropped may be undefined. A call of one ends the harness.
_UNUSED_LEFT_OUT = ("-Wl,--gc-sections", "-Wl,--unresolved-symbols=ignore-all")


@dataclass(frozen=True, slots=True)
class _Recipe:
    own: tuple[str, ...]  # files in the directory of this file
    tested: tuple[str, ...]  # files of the tree, compiled unchanged; headers among them are those of the tree
    included: tuple[str, ...] = ()  # files of the tree that files in `own` include
    linker: tuple[str, ...] = ()


def _eclass(lookup: str) -> _Recipe:
    """Return the recipe for equivclass.c with one implementation of member look-ups."""
    query = ("query", "joins", "exprs", "removal", "planner_stubs", "node_stubs")
    checks = ("harness", "questions", "model", "changes", "lookups", "classes", "clauses", "derivations")
    own = (f"eclass/{file}.c" for file in (*checks, *query, lookup))
    return _Recipe(
        (*own, "backend_stubs.c", "popcount_stubs.c", "failure.c"),
        (
            *(f"src/backend/optimizer/{file}.c" for file in ("path/equivclass", "util/appendinfo", "util/relnode")),
            *(f"src/backend/optimizer/util/{file}.c" for file in ("restrictinfo", "var")),
            *(f"src/backend/nodes/{file}.c" for file in ("bitmapset", "list", "makefuncs", "nodeFuncs")),
            *("src/common/hashfn.c", "src/include/nodes/pathnodes.h", "src/include/optimizer/paths.h"),
        ),
        ("src/backend/optimizer/plan/analyzejoins.c",),
        _UNUSED_LEFT_OUT,
    )


# Without a server, no type is looked up and no expression deparsed. Symbols that deparse.c needs for that may be
# undefined.
_SAMPLING = _Recipe(
    (*(f"sampling/{file}.c" for file in ("harness", "relation", "remote_sql")), "backend_stubs.c", "failure.c"),
    (
        *(f"contrib/postgres_fdw/{file}" for file in ("sampling.c", "deparse.c", "postgres_fdw.h")),
        *("src/backend/nodes/list.c", "src/common/stringinfo.c", "src/port/snprintf.c", "src/port/strlcpy.c"),
    ),
    linker=("-Wl,--gc-sections", "-Wl,--unresolved-symbols=ignore-all"),
)

HARNESSES = {
    "eclass_linear": _eclass("lookup_linear"),
    "eclass_children": _eclass("lookup_children"),
    "eclass_indexes": _eclass("lookup_indexes"),
    "eclass_iterator": _eclass("lookup_iterator"),
    "eclass_cache": _eclass("lookup_cache"),
    "blockbloom": _Recipe(
        ("blockbloom_harness.c", "popcount_stubs.c", "failure.c"),
        ("src/backend/lib/blockbloom.c", "src/include/lib/blockbloom.h", "src/port/qsort.c"),
    ),
    "buckets": _Recipe(
        (
            *(f"buckets/{file}.c" for file in ("harness", "sizing", "growth")),
            *("backend_stubs.c", "popcount_stubs.c", "failure.c"),
        ),
        ("src/include/executor/hashjoin.h",),
        ("src/backend/executor/nodeHash.c",),
        _UNUSED_LEFT_OUT,
    ),
    "resowner": _Recipe(
        (
            *("resowner_harness.c", "resowner_model.c", "resowner_release.c"),
            *("lock_stubs.c", "backend_stubs.c", "failure.c"),
        ),
        ("src/backend/utils/resowner/resowner.c", "src/port/qsort.c"),
    ),
    "sampling": _SAMPLING,
}
_HEADERS = "src/include/"
_OWN = "harness"  # directory for copies of `own` files, next to the compiled harness
_OBJECTS = "objects"


def build_harness(build: Build, name: str, tree: str = "") -> Path:
    """Return the harness `name` for the C files of a stored tree, by default the build's tree.

    It is compiled on first use. All other headers are those of the build, which are configured. So `tree` may differ
    from the build's tree in these files only.

    A harness is compiled from copies next to it. It therefore outlives the checkout that it was made in, and its
    coverage refers to the text of these copies. Raises BuildError, SourceError.
    """
    recipe = HARNESSES[name]
    tested = {path: _source(tree or build.tree, path) for path in (*recipe.tested, *recipe.included)}
    home = workdir.harnesses() / f"{name}-{_key(build, tested)}"
    harness = home / name
    with FileLock(f"{home}.lock"):
        if not harness.exists():
            shutil.rmtree(home, ignore_errors=True)
            shutil.copytree(_HERE, home / _OWN, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
            for path, text in tested.items():
                (home / path).parent.mkdir(parents=True, exist_ok=True)
                (home / path).write_text(text)
            _compile(build, harness, recipe, tested)
    return harness


def _source(tree: str, path: str) -> str:
    text = git.show(tree, path)
    if text is None:
        raise SourceError(f"tree {tree[:12]} has no {path}, which its libFuzzer harness is for")
    return text


def _key(build: Build, tested: Mapping[str, str]) -> str:
    digest = hashlib.sha256("\0".join((build.key, _compiler_version(), *_FLAGS, *_LINKING)).encode())
    for file in sorted(_HERE.rglob("*.[ch]")):
        digest.update(f"\0{file.relative_to(_HERE)}\0".encode() + file.read_bytes())
    for path, text in tested.items():
        digest.update(f"\0{path}\0{text}".encode())
    return digest.hexdigest()[:12]


@cache
def _compiler_version() -> str:
    if not shutil.which(CLANG):
        raise BuildError(f"libFuzzer harnesses need {CLANG}: run {workdir.COMMAND} doctor to see what to install")
    return subprocess.run([CLANG, "--version"], capture_output=True, text=True, check=True).stdout


def _compile(build: Build, harness: Path, recipe: _Recipe, tested: Mapping[str, str]) -> None:
    """Compile each file separately, unless another harness did, and link the objects. Raises BuildError."""
    home = harness.parent
    shared = {path: text for path, text in tested.items() if path.endswith(".h") or path in recipe.included}
    sources = {f"{_OWN}/{file}": (home / _OWN / file).read_text() for file in recipe.own}
    sources |= {path: tested[path] for path in recipe.tested if path.endswith(".c")}
    objects = workdir.harnesses() / _OBJECTS
    objects.mkdir(exist_ok=True)

    def compiled(path: str) -> Path:
        product = objects / f"{_key(build, {**shared, path: sources[path]})}.o"
        with FileLock(f"{product}.lock"):
            if not product.exists():
                includes = [f"-I{place}" for place in (_HEADERS, ".", *server_headers(build), _OWN)]
                _run(["env", f"--chdir={home}", CLANG, *_FLAGS, *includes, "-c", path], product)
        return product

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = list(pool.map(compiled, sources))
    _run([CLANG, *_FLAGS, *map(str, parts), *recipe.linker, *_LINKING], harness)


def _run(command: list[str], product: Path) -> None:
    """Run a compiler that creates `product`. Raises BuildError."""
    done = compile_file(command, product)
    if done.returncode:
        first = next(
            (line for line in done.stderr.splitlines() if "error" in line or "undefined" in line), f"{CLANG} failed"
        )
        raise BuildError(f"the libFuzzer harness {product.name} does not compile: {first.strip()}")
